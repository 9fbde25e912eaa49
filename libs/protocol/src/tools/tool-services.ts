/**
 * Tools on the bus: announcements, heartbeats, requests and replies. A call is identified by its idempotency key,
 * `<tenant>.<sid>.<effect id>`.
 */
import * as z from 'zod';
import { EditedPath, ToolResult } from '../journal/inputs.ts';
import { BUILT_IN_RULES } from '../personas/permissions.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { canonicalJson } from '../wire/canonical-json.ts';
import { ID_PATTERN } from '../wire/ids.ts';
import { JsonObject } from '../wire/json.ts';
import { fnv1a32 } from '../wire/subjects.ts';
import { TOOL_NAME_PATTERN, ToolDefinition } from './calls.ts';

/**
 * Heartbeats of instances, in milliseconds. An instance without one for `ttlMs` is declared dead, and work that may
 * move is sent to another instance. A call that may not move waits `silentMaxMs` for a silent instance that is still
 * connected: a blocked event loop looks like a frozen process. A call that no instance accepts is sent again for
 * `untakenMaxMs`.
 */
export const TOOL_LIVENESS = { beatMs: 300, ttlMs: 3_000, silentMaxMs: 15_000, untakenMaxMs: 15_000 } as const;

/** The queue group of a tool: its instances share its calls. */
export const TOOL_QUEUE_GROUP = 'cox-tools';

/** Bounds of one process that serves a tool. */
export const TOOL_SERVICE_BOUNDS = {
  /** Maximum of concurrent calls of one instance. Further calls are rejected and do not run. */
  callsAtOnceMax: 256,
  /** Ended calls in the ledger. The oldest are removed first. */
  ledgerEntriesMax: 4_096,
  /** Their results together, as JSON. */
  ledgerMaxBytes: 64 * 1024 * 1024,
  /** Maximum age of an ended call in the ledger. */
  ledgerMaxAgeMs: 3_600_000,
  /**
   * Time that a held call waits for the order `begin`. Then it is dropped and has never run. Not longer than the
   * heartbeat timeout: when a host moves a call away from a silent instance, a late order must find nothing.
   */
  heldMaxMs: TOOL_LIVENESS.ttlMs,
  /** Sessions with a remembered epoch. The least recently used one is removed first. */
  sessionsFencedMax: 65_536,
  /** Maximum size of one answer as JSON. The default limit of NATS messages is twice that. */
  answerMaxBytes: 512 * 1024,
  progressMaxChars: 4_096,
  feedbackMaxChars: 8_192,
} as const;

// Names of a host's own tools: with such a name, a bus tool would pass the built-in rules.
const HOSTS_OWN = new Set([
  ...BUILT_IN_RULES.map(({ tool }) => tool),
  'fetch_url',
  'delegate',
  'handoff',
  'send_message',
]);

/** The name of a bus tool: not the name of a tool of the host or of an MCP server. */
export const BusToolName = z
  .string()
  .regex(TOOL_NAME_PATTERN, { error: 'a tool is named with 1 to 128 characters of A-Z a-z 0-9 _ -' })
  .refine((name) => !name.includes('__'), { error: 'a name with __ is one of an MCP server’s tool' })
  .refine((name) => !HOSTS_OWN.has(name), { error: 'a host has a tool of this name itself' });

/** The announcement of a tool. The registry keeps it until another announcement or its removal. */
export const ToolAnnouncement = z.strictObject({
  v: z.literal(1),
  /** Time of the first announcement of this version. */
  since: z.iso.datetime(),
  ...ToolDefinition.omit({ source: true, max_output: true }).shape,
  name: BusToolName,
  /** Only this session has the tool, under the name in its start. */
  for_session: z.string().regex(ID_PATTERN).optional(),
});
export type ToolAnnouncement = z.infer<typeof ToolAnnouncement>;

/**
 * Distinguishes versions of a tool, as eight digits. It is not a security feature: digests can collide.
 * @param announced the announcement of an instance or of the registry.
 */
export function toolDigest({
  name,
  description,
  input_schema,
  traits,
  needs_approval,
}: Omit<ToolAnnouncement, 'v' | 'since'>): string {
  const version = { name, description, input_schema, traits, ...(needs_approval ? { needs_approval } : {}) };
  return fnv1a32(canonicalJson(version)).toString(16).padStart(8, '0');
}

/**
 * The heartbeat of an instance. `draining` accepts no new calls and finishes its own. `standby` does the same, and
 * accepts new calls when another instance has gone. `gone` is the last one. The other members are for people: start
 * time, version ({@link toolDigest}), and number of calls.
 */
export const ToolBeat = z.strictObject({
  v: z.literal(1),
  state: z.enum(['serving', 'draining', 'standby', 'gone']),
  /**
   * Only for tools of which one instance at a time accepts calls, the one with the newest claim: time of its claim,
   * milliseconds since 1970; 0 for never.
   */
  claimed: z.number().int().nonnegative().optional(),
  since: z.iso.datetime().optional(),
  digest: z.string().max(16).optional(),
  running: z.number().int().nonnegative().optional(),
});
export type ToolBeat = z.infer<typeof ToolBeat>;

const about = {
  v: z.literal(1),
  key: z.string().min(1).max(256),
  session_id: z.string().regex(ID_PATTERN),
  epoch: z.number().int().positive(),
};

const sending = z.number().int().positive();

/** One call, to the queue group of a tool or to one of its instances. */
export const ToolAsked = z.strictObject({
  ...about,
  call_id: z.string().min(1).max(256),
  /**
   * The instance answers `ready` and waits for the order `begin`. A call without this order has certainly not run, and
   * may be sent to another instance, even if the first one finds it later. The number identifies the sending: a late
   * order for an earlier sending has no effect.
   */
  hold: sending.optional(),
  /** The tool of a persona's service. Absent for a model step of this service. */
  tool: z.string().regex(TOOL_NAME_PATTERN).optional(),
  args: JsonObject,
});
export type ToolAsked = z.infer<typeof ToolAsked>;

/**
 * The question whether a person must approve a call, on the subjects of its calls. Any instance answers it, any number
 * of times, and runs nothing.
 */
export const ToolApprovalAsked = z.strictObject({
  v: z.literal(1),
  want: z.literal('approval'),
  session_id: z.string().regex(ID_PATTERN),
  call_id: z.string().min(1).max(256),
  /** The tool of a persona's service. */
  tool: z.string().regex(TOOL_NAME_PATTERN).optional(),
  args: JsonObject,
});
export type ToolApprovalAsked = z.infer<typeof ToolApprovalAsked>;

/** The answer to {@link ToolApprovalAsked}. */
export const ToolApprovalSaid = z.strictObject({ v: z.literal(1), needs_approval: z.boolean() });
export type ToolApprovalSaid = z.infer<typeof ToolApprovalSaid>;

/**
 * An order about a call. `probe` asks for its state; from then on the instance refuses older epochs of the session, and
 * drops the call if it is still held. `attach` sends its outcome to the asker from now on. `begin` runs a held call
 * with the same number. `abort` stops it, or keeps it from starting.
 */
export const ToolOrder = z.discriminatedUnion('want', [
  z.strictObject({ ...about, want: z.literal('begin'), hold: sending }),
  z.strictObject({ ...about, want: z.literal('probe') }),
  z.strictObject({ ...about, want: z.literal('attach') }),
  z.strictObject({ ...about, want: z.literal('abort'), reason: z.string().max(2_048) }),
]);
export type ToolOrder = z.infer<typeof ToolOrder>;

const said = { v: z.literal(1), key: z.string().max(256), instance: z.string().regex(ID_PATTERN) };

/** The end of a call. */
export const ToolEnded = z.strictObject({
  ...said,
  type: z.literal('ended'),
  status: z.enum(['ok', 'error', 'cancelled']),
  result: ToolResult,
  /** Edited files, relative to the session's root. */
  edited: z.array(EditedPath).min(1).max(BOUNDS.editedPathsPerCallMax).optional(),
});
export type ToolEnded = z.infer<typeof ToolEnded>;

/** A message of an instance about a call, to the last asker. */
export const ToolSaid = z.discriminatedUnion('type', [
  /** The call is held, and runs after the order `begin`. */
  z.strictObject({ ...said, type: z.literal('ready'), hold: sending }),
  /** The call runs. */
  z.strictObject({ ...said, type: z.literal('running') }),
  /**
   * The outcome arrives as the command `call_outcome`, even if this instance ends. `epoch`: the epoch of that outcome,
   * if it is older than the asker's.
   */
  z.strictObject({ ...said, type: z.literal('accepted'), epoch: about.epoch.optional() }),
  z.strictObject({ ...said, type: z.literal('progress'), text: z.string().max(TOOL_SERVICE_BOUNDS.progressMaxChars) }),
  z.strictObject({ ...said, type: z.literal('feedback'), text: z.string().max(TOOL_SERVICE_BOUNDS.feedbackMaxChars) }),
  ToolEnded,
  /**
   * The instance stopped the call because the instance ends. The outcome is unknown, and the session did not cancel the
   * call.
   */
  z.strictObject({ ...said, type: z.literal('given_up'), message: z.string().max(2_048) }),
  /** The instance does not know the call. */
  z.strictObject({ ...said, type: z.literal('unknown') }),
  /** The asker has an older epoch of the session, or the instance accepts no more work. Nothing ran. */
  z.strictObject({
    ...said,
    type: z.literal('refused'),
    code: z.enum(['stale_epoch', 'tool_unavailable']),
    message: z.string().max(2_048),
  }),
]);
export type ToolSaid = z.infer<typeof ToolSaid>;

/** Whether a key belongs to a session of a tenant. The key of a step also contains its epoch and its attempt. */
export function isKeyOf(key: string, tenant: string, sessionId: string): boolean {
  const prefix = `${tenant}.${sessionId}.`;
  return key.startsWith(prefix) && /^\d{1,15}-\d{1,15}(-\d{1,15}-\d{1,15})?$/.test(key.slice(prefix.length));
}
