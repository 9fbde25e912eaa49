/**
 * The protocol of served work: a host sends a call of a tool, a step of a persona or a question to the instances that
 * serve it. Questions go to hooks, and to tools that decide whether a person must approve a call. All kinds have the
 * same requests, orders and reports. They differ in three traits:
 *
 * - Repeatable work may run more than once: steps, questions, and calls of idempotent tools.
 * - Calls of tools are held until the host orders their start. Steps and questions start when they arrive.
 * - Instances keep a ledger of calls and steps. A repeated request gets the outcome of the first one, and a request or
 *   order with an older epoch of the session is refused. Questions have no epoch, and no entry after their end.
 */
import * as z from 'zod';
import { HookId } from '../hooks/hook-registrations.ts';
import { ServedHookAnswer } from '../hooks/hook-services.ts';
import { EditedPath, ToolResult } from '../journal/inputs.ts';
import { TOOL_NAME_PATTERN } from '../tools/calls.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { listOf } from '../wire/containers.ts';
import { ID_PATTERN } from '../wire/ids.ts';
import { WrapperObject } from '../wire/json.ts';
import { SERVED_LIVENESS } from './heartbeats.ts';

/** Bounds of one instance, of messages, and of what a host knows about the services of a tenant. */
export const SERVED_BOUNDS = {
  /**
   * Maximum number of concurrent calls at one instance; also of its steps, and of its questions. Further ones are
   * refused.
   */
  requestsAtOnceMax: 256,
  /** Ended calls and steps in the ledger. The oldest are removed first. */
  ledgerEntriesMax: 4_096,
  /** Results of the ended calls and steps in the ledger together, as JSON. */
  ledgerMaxBytes: 64 * 1024 * 1024,
  /** Maximum age of an ended call or step in the ledger. */
  ledgerMaxAgeMs: 3_600_000,
  /**
   * Time that a held request waits for the order `start`. Then it is dropped and has never run. Not longer than the
   * heartbeat timeout: when a host moves a call away from a silent instance, a late order must find nothing.
   */
  heldMaxMs: SERVED_LIVENESS.ttlMs,
  /** Sessions whose newest epoch an instance remembers. The least recently used one is removed first. */
  sessionsFencedMax: 65_536,
  /** Maximum size of a heartbeat. */
  heartbeatMaxBytes: 1024,
  /** Maximum size of an order, and of a request for a part of long data. */
  orderMaxBytes: 16 * 1024,
  /** Maximum size of one outcome as JSON. The default limit of NATS messages is twice as much. */
  outcomeMaxBytes: 512 * 1024,
  progressMaxChars: 4_096,
  feedbackMaxChars: 8_192,
  /** One fetched part, see {@link WorkFetch}. */
  fetchedPartBytes: 256 * 1024,
  /** Announced names of one kind that a host knows per tenant. Further ones are ignored, with a warning in its log. */
  namesPerTenantMax: 4_096,
  /** Announcements of one kind that a host knows per tenant, together. Further ones are ignored, with a warning. */
  announcedPerTenantMaxBytes: 16 * 1024 * 1024,
  /** Keys of one kind that a read of the registry returns per tenant, with markers of removed keys. */
  keysReadMax: 65_536,
  /** Known instances of one service. Further ones are ignored, with a warning. */
  instancesPerNameMax: 1_024,
  /** Known instances of all services of one kind per tenant. Further ones are ignored, with a warning. */
  instancesPerTenantMax: 16_384,
} as const;

/** The longest key has 323: a tenant and a session of 64, an effect id of 63, and the id of a persona's hook with 129. */
const KEY_MAX_CHARS = 384;

const about = {
  v: z.literal(1),
  /** The idempotency key, see {@link isKeyOf}. */
  key: z.string().min(1).max(KEY_MAX_CHARS),
  session_id: z.string().regex(ID_PATTERN),
  /** Absent for a question. */
  epoch: z.number().int().positive().optional(),
};

const sending = z.number().int().positive();

/** One call, step or question: to the queue group of a service, or to one of its instances. */
export const WorkRequest = z.strictObject({
  ...about,
  /** The call of the session; `step-<attempt>` for a model step. Absent for a question to a hook. */
  call_id: z.string().min(1).max(256).optional(),
  /**
   * The instance reports `ready` and waits for the order `start`. Without this order it has certainly not run the
   * request. So the host may send the request to another instance, even if the first instance receives it later. The
   * number identifies the sending: a late order for an earlier sending has no effect.
   */
  hold: sending.optional(),
  /** The tool of a persona's service. A request to a persona without `tool` and `hook` is a model step. */
  tool: z.string().regex(TOOL_NAME_PATTERN).optional(),
  /** The hook of a hook service or of a persona's service. */
  hook: HookId.optional(),
  /** Only asks whether a person must approve this call. The tool does not run. */
  approval: z.literal(true).optional(),
  args: WrapperObject,
});
export type WorkRequest = z.infer<typeof WorkRequest>;

/**
 * An order about a request. `start` runs a held request with the same number. `attach` sends the reports to the sender
 * of this order from now on. `abort` stops the request, or keeps it from starting. `probe` asks for its state, and
 * drops the request if it is still held. After an order with an epoch the instance refuses older epochs of the session.
 */
export const WorkOrder = z.discriminatedUnion('want', [
  z.strictObject({ ...about, want: z.literal('start'), hold: sending }),
  z.strictObject({ ...about, want: z.literal('probe') }),
  z.strictObject({ ...about, want: z.literal('attach') }),
  z.strictObject({ ...about, want: z.literal('abort'), reason: z.string().max(2_048) }),
]);
export type WorkOrder = z.infer<typeof WorkOrder>;

const report = { v: z.literal(1), key: z.string().max(KEY_MAX_CHARS), instance: z.string().regex(ID_PATTERN) };

/** The end of a call or a step. */
export const WorkEnded = z.strictObject({
  ...report,
  type: z.literal('ended'),
  status: z.enum(['ok', 'error', 'cancelled']),
  result: ToolResult,
  /** Edited files, relative to the session's root. */
  edited: listOf(EditedPath).min(1).max(BOUNDS.editedPathsPerCallMax).optional(),
});
export type WorkEnded = z.infer<typeof WorkEnded>;

/** A report of an instance about a request, to the sender of the newest request or order for it. */
export const WorkReport = z.discriminatedUnion('type', [
  /** The request is held, and runs after the order `start`. */
  z.strictObject({ ...report, type: z.literal('ready'), hold: sending }),
  /** It runs: the instance has accepted it. */
  z.strictObject({ ...report, type: z.literal('running') }),
  z.strictObject({ ...report, type: z.literal('progress'), text: z.string().max(SERVED_BOUNDS.progressMaxChars) }),
  z.strictObject({ ...report, type: z.literal('feedback'), text: z.string().max(SERVED_BOUNDS.feedbackMaxChars) }),
  WorkEnded,
  /** The answer to a question. For a question about an approval `raw` is false if no approval is needed. */
  z.strictObject({ ...report, type: z.literal('answered'), answer: ServedHookAnswer }),
  /**
   * The outcome arrives as the command `call_outcome`, even if this instance ends. `epoch`: the epoch in that command,
   * if it is older than the asker's.
   */
  z.strictObject({ ...report, type: z.literal('accepted'), epoch: z.number().int().positive().optional() }),
  /**
   * The outcome is unknown: the instance stopped the work because the instance ends, or no longer has the outcome. The
   * session did not cancel the work.
   */
  z.strictObject({ ...report, type: z.literal('given_up'), message: z.string().max(2_048) }),
  /** The instance does not know the request, or has dropped it before it ran. */
  z.strictObject({ ...report, type: z.literal('unknown') }),
  /**
   * The instance has not started the work for this request or order. `stale_epoch`: the instance knows a newer epoch of
   * the session. `tool_unavailable`: the instance is stopping, does not serve the work, or has reached its limit.
   */
  z.strictObject({
    ...report,
    type: z.literal('refused'),
    code: z.enum(['stale_epoch', 'tool_unavailable']),
    message: z.string().max(2_048),
  }),
]);
export type WorkReport = z.infer<typeof WorkReport>;

/** The members by which the report of an end is recognized if the report is otherwise invalid. */
export const WorkEndHead = z.object({ ...report, type: z.enum(['ended', 'answered']) });

const EFFECT = /^\d{1,15}-\d{1,15}(-\d{1,15}-\d{1,15})?(\.[A-Za-z0-9_:-]{1,129})?$/;

/**
 * Whether an idempotency key belongs to a session of a tenant. The key of a call is `<tenant>.<session>.<effect id>`.
 * The key of a step also contains its epoch and its attempt, the key of a question the id of the hook. A question about
 * an approval has a random key with the effect id `0-0`.
 */
export function isKeyOf(key: string, tenant: string, sessionId: string): boolean {
  const prefix = `${tenant}.${sessionId}.`;
  return key.startsWith(prefix) && EFFECT.test(key.slice(prefix.length));
}

/**
 * A request of an instance to the host that sent it work, for data that does not fit in one message: the request of a
 * step, or messages that a hook reads. The body of the reply is a part of the data's UTF-8 JSON, from `offset` on. The
 * header `Cox-Total` is the size of all of it in bytes. If the host cannot provide the data, the reply is empty, with
 * the header `Cox-Error`.
 */
export const WorkFetch = z.strictObject({
  want: z.enum(['request', 'transcript', 'messages']),
  offset: z.number().int().nonnegative(),
});
export type WorkFetch = z.infer<typeof WorkFetch>;

/** Whether a request is a question: an instance answers it any number of times, also while it drains. */
export function isQuestion({ hook, approval }: Pick<WorkRequest, 'hook' | 'approval'>): boolean {
  return hook !== undefined || approval === true;
}
