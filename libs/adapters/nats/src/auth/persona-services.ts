/**
 * Permissions of the role `personas`: announce personas, answer their steps and calls, and answer questions to their
 * own hooks. The role may not answer the hooks of a host or of a hook service. Steps, calls and hook questions are
 * received only in the queue group: a subscription outside of it would expose every prompt.
 */
import { QUEUE_GROUPS, STREAMS, systemSubjects, tenantSubjects } from '@coxswain/protocol';
import type { Passage, RoleRights } from './roles.ts';
import { REPORTS_EXPIRE } from './tool-workers.ts';

const REGISTRY = `KV_${STREAMS.registry}`;

/** The subjects of the streams' account that the role `personas` reaches. */
export function personaPassages(tenant: string): readonly Passage[] {
  const announcements = tenantSubjects.announcements('personas', tenant);
  return [
    { subject: `$JS.API.DIRECT.GET.${REGISTRY}.${announcements}`, answers: 'many' },
    { subject: announcements, answers: 'one' },
    { subject: tenantSubjects.heartbeats('personas', tenant), answers: 'none' },
    // An instance fetches long requests, and the data that hooks read, from the host that asks.
    { subject: systemSubjects.callbacks, answers: 'one' },
  ];
}

/** The permissions of the role `personas` in its tenant's account. */
export function personaRights(tenant: string, inboxPrefix: string): RoleRights {
  return {
    publish: personaPassages(tenant).map(({ subject }) => subject),
    subscribe: [
      `${inboxPrefix}.>`,
      ...tenantSubjects.requests('personas', tenant).map((subject) => `${subject} ${QUEUE_GROUPS.personas}`),
      ...tenantSubjects.orders('personas', tenant),
    ],
    // A host repeats its question every few seconds while a step runs.
    answers: { max: -1, expires: REPORTS_EXPIRE },
  };
}
