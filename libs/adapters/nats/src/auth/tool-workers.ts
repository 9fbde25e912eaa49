/**
 * Permissions of tool workers. The key of a worker is restricted to the tools that the worker serves. A key of the role
 * `tools` is for all tools of a tenant.
 *
 * W1: Calls are received only in the queue group. A subscription outside of it would expose every call, and its owner
 *     could answer it.
 * W2: An answer goes to the reply subject of a question, for a limited time. A host repeats its question long before
 *     that.
 */
import { BusToolName, cutText, ID_PATTERN, QUEUE_GROUPS, STREAMS, TenantId, tenantSubjects } from '@coxswain/protocol';
import type { Passage, RoleRights } from './roles.ts';

/** A worker with its own key. */
export interface ToolWorkerKey {
  readonly tenant: string;
  /** 1 to 32 characters of A-Z a-z 0-9 _ -. It is also the name of the key's file. */
  readonly name: string;
  /** The names of the tools that it serves, 1 to 64. */
  readonly tools: readonly string[];
}

/** Maximum number of tools of one key. */
export const WORKER_TOOLS_MAX = 64;
const NAME_MAX = 32;

/** Validates a requested worker key. @returns a description of the first problem; null if there is none. */
export function toolWorkerProblem({ tenant, name, tools }: ToolWorkerKey): string | null {
  if (!TenantId.safeParse(tenant).success) return 'its tenant takes 1 to 64 characters of A-Z a-z 0-9 _ -';
  if (!ID_PATTERN.test(name) || name.length > NAME_MAX)
    return `its name takes 1 to ${NAME_MAX} characters of A-Z a-z 0-9 _ -`;
  if (tools.length === 0 || tools.length > WORKER_TOOLS_MAX) return `it serves 1 to ${WORKER_TOOLS_MAX} tools`;
  for (const [index, tool] of tools.entries()) {
    const read = BusToolName.safeParse(tool);
    if (!read.success) return `its tool "${cutText(tool, 80)}": ${read.error.issues[0]?.message}`;
    if (tools.indexOf(tool) !== index) return `its tool ${tool} is named twice`;
  }
  return null;
}

/** The inbox prefix of a worker. */
export function workerInboxPrefix({ tenant, name }: Pick<ToolWorkerKey, 'tenant' | 'name'>): string {
  return tenantSubjects.inboxPrefix(tenant, `worker-${name}`);
}

const REGISTRY = `KV_${STREAMS.registry}`;

/** The subjects of the streams' account that a worker for these tools reaches; `*` is every tool. */
export function toolPassages(tenant: string, tools: readonly string[]): readonly Passage[] {
  return [
    { subject: tenantSubjects.command(tenant, 'call_outcome'), answers: 'one' },
    ...tools.flatMap((tool): Passage[] => {
      const announcement = tenantSubjects.announcements('tools', tenant, tool);
      return [
        { subject: `$JS.API.DIRECT.GET.${REGISTRY}.${announcement}`, answers: 'many' },
        { subject: announcement, answers: 'one' },
        { subject: tenantSubjects.heartbeats('tools', tenant, tool), answers: 'none' },
      ];
    }),
  ];
}

/** The permissions of a worker for these tools in its tenant's account; `*` is every tool. */
export function toolRights(tenant: string, inboxPrefix: string, tools: readonly string[]): RoleRights {
  return {
    publish: toolPassages(tenant, tools).map(({ subject }) => subject),
    subscribe: [
      `${inboxPrefix}.>`,
      ...tools.flatMap((tool) => [
        ...tenantSubjects.requests('tools', tenant, tool).map((subject) => `${subject} ${QUEUE_GROUPS.tools}`),
        ...tenantSubjects.orders('tools', tenant, tool),
        // Other instances' heartbeats contain the versions of the tool that they serve.
        tenantSubjects.heartbeats('tools', tenant, tool),
      ]),
    ],
    answers: { max: -1, expires: REPORTS_EXPIRE },
  };
}

/** Time limit of a report. A host that waits for the end of a request sends an order about it every few seconds. */
export const REPORTS_EXPIRE = '2m';
