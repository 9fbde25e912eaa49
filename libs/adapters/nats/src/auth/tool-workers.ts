/**
 * Who serves tools. A key of its own names the tools that its worker serves, and reaches nothing of any other; the role `tools` is
 * one key for all tools of a tenant.
 *
 * W1: Calls are taken in the queue group alone. Whoever could listen beside it would be shown every call, and might answer it.
 * W2: An answer goes where a question said, for a short while: a host asks again long before it is over.
 */
import {
  BusToolName,
  cutText,
  ID_PATTERN,
  STREAMS,
  TenantId,
  TOOL_QUEUE_GROUP,
  tenantSubjects,
} from '@coxswain/protocol';
import type { Passage, RoleRights } from './roles.ts';

/** A worker with a key of its own. */
export interface ToolWorkerKey {
  readonly tenant: string;
  /** 1 to 32 characters of A-Z a-z 0-9 _ -. Its file is called by it. */
  readonly name: string;
  /** The tools that it serves: 1 to 64. */
  readonly tools: readonly string[];
}

/** Tools of one key. */
export const WORKER_TOOLS_MAX = 64;
const NAME_MAX = 32;

/** What is wrong with a worker's key as it was asked for, in words; null where nothing is. */
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

/** Where the answers to a worker go. */
export function workerInboxPrefix({ tenant, name }: Pick<ToolWorkerKey, 'tenant' | 'name'>): string {
  return tenantSubjects.inboxPrefix(tenant, `worker-${name}`);
}

const REGISTRY = `KV_${STREAMS.registry}`;

/** What whoever serves these tools reaches of the streams' account; `*` is every tool. */
export function toolPassages(tenant: string, tools: readonly string[]): readonly Passage[] {
  return [
    { subject: tenantSubjects.command(tenant, 'call_outcome'), answers: 'one' },
    ...tools.flatMap((tool): Passage[] => {
      const announcement = tenantSubjects.toolAnnouncements(tenant, tool);
      return [
        { subject: `$JS.API.DIRECT.GET.${REGISTRY}.${announcement}`, answers: 'many' },
        { subject: announcement, answers: 'one' },
        { subject: tenantSubjects.toolBeats(tenant, tool), answers: 'none' },
      ];
    }),
  ];
}

/** The rights of whoever serves these tools, in its tenant's account; `*` is every tool. */
export function toolRights(tenant: string, inboxPrefix: string, tools: readonly string[]): RoleRights {
  return {
    publish: toolPassages(tenant, tools).map(({ subject }) => subject),
    subscribe: [
      `${inboxPrefix}.>`,
      ...tools.flatMap((tool) => [
        ...tenantSubjects.toolCalls(tenant, tool).map((subject) => `${subject} ${TOOL_QUEUE_GROUP}`),
        ...tenantSubjects.toolOrders(tenant, tool),
        // Which versions of its tool are served by others.
        tenantSubjects.toolBeats(tenant, tool),
      ]),
    ],
    answers: { max: -1, expires: TOOL_ANSWERS_EXPIRE },
  };
}

/** How long a question may be answered: a host that waits for a call asks again every few seconds. */
export const TOOL_ANSWERS_EXPIRE = '2m';
