/**
 * Who serves personas: announces them, answers their steps and calls and the questions to their own hooks, and reaches nothing
 * else; no hook of a host's or of a hook service is theirs to answer. All is taken in the queue group alone, as whoever could
 * listen beside it would be shown every prompt.
 */
import { PERSONA_QUEUE_GROUP, STREAMS, systemSubjects, tenantSubjects } from '@coxswain/protocol';
import type { Passage, RoleRights } from './roles.ts';
import { TOOL_ANSWERS_EXPIRE } from './tool-workers.ts';

const REGISTRY = `KV_${STREAMS.registry}`;

/** What whoever serves personas reaches of the streams' account. */
export function personaPassages(tenant: string): readonly Passage[] {
  const announcements = tenantSubjects.personaAnnouncements(tenant);
  return [
    { subject: `$JS.API.DIRECT.GET.${REGISTRY}.${announcements}`, answers: 'many' },
    { subject: announcements, answers: 'one' },
    { subject: tenantSubjects.personaBeats(tenant), answers: 'none' },
    // Long requests, and what hooks look at, are fetched from the host that asks.
    { subject: systemSubjects.callbacks, answers: 'one' },
  ];
}

/** The rights of whoever serves personas, in its tenant's account. */
export function personaRights(tenant: string, inboxPrefix: string): RoleRights {
  return {
    publish: personaPassages(tenant).map(({ subject }) => subject),
    subscribe: [
      `${inboxPrefix}.>`,
      ...tenantSubjects.personaSteps(tenant).map((subject) => `${subject} ${PERSONA_QUEUE_GROUP}`),
      ...tenantSubjects.personaHooks(tenant).map((subject) => `${subject} ${PERSONA_QUEUE_GROUP}`),
      ...tenantSubjects.personaOrders(tenant),
    ],
    // A host asks again every few seconds while a step runs.
    answers: { max: -1, expires: TOOL_ANSWERS_EXPIRE },
  };
}
