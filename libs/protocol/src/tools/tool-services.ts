/**
 * Tools on the bus: what a process announces, how it says that it lives, how it is asked, and what it answers. A call is
 * known everywhere by its idempotency key, `<tenant>.<sid>.<effect id>`.
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
 * Heartbeats of instances. One that misses them for `ttlMs` is declared dead for everything that may move to another
 * instance. A call that may not move waits for a silent instance for `silentMaxMs` as long as that is connected: an event loop
 * that is blocked looks like a process that is frozen. A call that no instance takes is sent again for `untakenMaxMs`.
 */
export const TOOL_LIVENESS = { beatMs: 300, ttlMs: 3_000, silentMaxMs: 15_000, untakenMaxMs: 15_000 } as const;

/** The queue group in which instances of a tool share its calls. */
export const TOOL_QUEUE_GROUP = 'cox-tools';

/** What a process that serves a tool keeps and does at most. */
export const TOOL_SERVICE_BOUNDS = {
  /** Maximum of concurrent calls of one instance. Further calls are rejected and do not run. */
  callsAtOnceMax: 256,
  /** Calls that have ended and that the ledger still knows; the oldest go first. */
  ledgerEntriesMax: 4_096,
  /** Their results together, as JSON. */
  ledgerMaxBytes: 64 * 1024 * 1024,
  /** How long a call that has ended is known. */
  ledgerMaxAgeMs: 3_600_000,
  /**
   * How long a held call waits for the order to begin; then it is dropped, and has never run. No longer than heartbeats count: when a
   * host moves the call away from a silent instance, an order that still lies there is too late.
   */
  heldMaxMs: TOOL_LIVENESS.ttlMs,
  /** Sessions of which the newest epoch is remembered; the one that was heard of least recently goes first. */
  sessionsFencedMax: 65_536,
  /** Maximum size of one answer as JSON. The default limit of NATS messages is twice that. */
  answerMaxBytes: 512 * 1024,
  progressMaxChars: 4_096,
  feedbackMaxChars: 8_192,
} as const;

// Tools of these names are a host's own: the built-in rules would let a stranger's pass under them.
const HOSTS_OWN = new Set([
  ...BUILT_IN_RULES.map(({ tool }) => tool),
  'fetch_url',
  'delegate',
  'handoff',
  'send_message',
]);

/** What a bus tool may be called: neither like a tool of the host's nor like one of an MCP server. */
export const BusToolName = z
  .string()
  .regex(TOOL_NAME_PATTERN, { error: 'a tool is named with 1 to 128 characters of A-Z a-z 0-9 _ -' })
  .refine((name) => !name.includes('__'), { error: 'a name with __ is one of an MCP server’s tool' })
  .refine((name) => !HOSTS_OWN.has(name), { error: 'a host has a tool of this name itself' });

/** The announcement of a tool. The registry keeps it until another announcement or its removal. */
export const ToolAnnouncement = z.strictObject({
  v: z.literal(1),
  /** Since when this version is the announced one. */
  since: z.iso.datetime(),
  ...ToolDefinition.omit({ source: true, max_output: true }).shape,
  name: BusToolName,
  /** Only this session has it, and only under the name that its start gives it. */
  for_session: z.string().regex(ID_PATTERN).optional(),
});
/** See {@link ToolAnnouncement}. */
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
 * What an instance says of itself, again and again. `draining` takes no new calls and still works on those that it has, and so does
 * `standby`, which takes new ones when another instance has gone; `gone` is the last of it. The rest is for people: since when it serves, which version ({@link toolDigest}), and how many
 * calls it works on.
 */
export const ToolBeat = z.strictObject({
  v: z.literal(1),
  state: z.enum(['serving', 'draining', 'standby', 'gone']),
  /** Where one instance alone takes calls, the one with the newest: when it has claimed them, milliseconds since 1970; 0 for never. */
  claimed: z.number().int().nonnegative().optional(),
  since: z.iso.datetime().optional(),
  digest: z.string().max(16).optional(),
  running: z.number().int().nonnegative().optional(),
});
/** See {@link ToolBeat}. */
export type ToolBeat = z.infer<typeof ToolBeat>;

const about = {
  v: z.literal(1),
  key: z.string().min(1).max(256),
  session_id: z.string().regex(ID_PATTERN),
  epoch: z.number().int().positive(),
};

const sending = z.number().int().positive();

/** One call: to the queue group of a tool, or to one instance of it. */
export const ToolAsked = z.strictObject({
  ...about,
  call_id: z.string().min(1).max(256),
  /**
   * The instance answers `ready` and runs nothing before the order `begin`. So a call that no instance was ordered to begin has
   * certainly not run, and may be sent to another instance, although the first one may wake up and find it later. The number is that
   * of the sending: an order to begin an earlier one that comes late begins nothing.
   */
  hold: sending.optional(),
  /** Which of the tools of a persona's service; without it, of such a service, a step of its model is asked for. */
  tool: z.string().regex(TOOL_NAME_PATTERN).optional(),
  args: JsonObject,
});
/** See {@link ToolAsked}. */
export type ToolAsked = z.infer<typeof ToolAsked>;

/**
 * The question whether a person must approve a call, on the subjects of its calls. Any instance answers it, as often as it is
 * asked, and runs nothing.
 */
export const ToolApprovalAsked = z.strictObject({
  v: z.literal(1),
  want: z.literal('approval'),
  session_id: z.string().regex(ID_PATTERN),
  call_id: z.string().min(1).max(256),
  /** Which of the tools of a persona's service. */
  tool: z.string().regex(TOOL_NAME_PATTERN).optional(),
  args: JsonObject,
});
/** See {@link ToolApprovalAsked}. */
export type ToolApprovalAsked = z.infer<typeof ToolApprovalAsked>;

/** Its answer. */
export const ToolApprovalSaid = z.strictObject({ v: z.literal(1), needs_approval: z.boolean() });
/** See {@link ToolApprovalSaid}. */
export type ToolApprovalSaid = z.infer<typeof ToolApprovalSaid>;

/**
 * An order about a call. `probe` asks for its state; from then on the instance refuses older epochs of the session and
 * drops the call if it is still held. `attach` sends its outcome to the asker from now on. `begin` runs a call that is held
 * under the same number.
 * `abort` stops it, or keeps it from beginning.
 */
export const ToolOrder = z.discriminatedUnion('want', [
  z.strictObject({ ...about, want: z.literal('begin'), hold: sending }),
  z.strictObject({ ...about, want: z.literal('probe') }),
  z.strictObject({ ...about, want: z.literal('attach') }),
  z.strictObject({ ...about, want: z.literal('abort'), reason: z.string().max(2_048) }),
]);
/** See {@link ToolOrder}. */
export type ToolOrder = z.infer<typeof ToolOrder>;

const said = { v: z.literal(1), key: z.string().max(256), instance: z.string().regex(ID_PATTERN) };

/** How a call has ended. */
export const ToolEnded = z.strictObject({
  ...said,
  type: z.literal('ended'),
  status: z.enum(['ok', 'error', 'cancelled']),
  result: ToolResult,
  /** Files that it has edited, relative to the session's root. */
  edited: z.array(EditedPath).min(1).max(BOUNDS.editedPathsPerCallMax).optional(),
});
/** See {@link ToolEnded}. */
export type ToolEnded = z.infer<typeof ToolEnded>;

/** A message of an instance about a call, to the last sender. */
export const ToolSaid = z.discriminatedUnion('type', [
  /** It is held here, and runs when the order `begin` comes. */
  z.strictObject({ ...said, type: z.literal('ready'), hold: sending }),
  /** It runs here. */
  z.strictObject({ ...said, type: z.literal('running') }),
  /**
   * Its outcome comes, or has come, as the command `call_outcome`, whatever becomes of this instance. `epoch`: the one that it
   * comes with, where that is older than the one that was asked with.
   */
  z.strictObject({ ...said, type: z.literal('accepted'), epoch: about.epoch.optional() }),
  z.strictObject({ ...said, type: z.literal('progress'), text: z.string().max(TOOL_SERVICE_BOUNDS.progressMaxChars) }),
  z.strictObject({ ...said, type: z.literal('feedback'), text: z.string().max(TOOL_SERVICE_BOUNDS.feedbackMaxChars) }),
  ToolEnded,
  /** The instance itself has stopped it, as it ends: its outcome is unknown. Nothing was cancelled by the session. */
  z.strictObject({ ...said, type: z.literal('given_up'), message: z.string().max(2_048) }),
  /** This instance knows nothing of it. */
  z.strictObject({ ...said, type: z.literal('unknown') }),
  /** Whoever asked has an older epoch of the session, or the instance takes nothing more: nothing was done. */
  z.strictObject({
    ...said,
    type: z.literal('refused'),
    code: z.enum(['stale_epoch', 'tool_unavailable']),
    message: z.string().max(2_048),
  }),
]);
/** See {@link ToolSaid}. */
export type ToolSaid = z.infer<typeof ToolSaid>;

/** Whether a key is one of this session, in this tenant. A step's key also says of which epoch and which try it is. */
export function isKeyOf(key: string, tenant: string, sessionId: string): boolean {
  const prefix = `${tenant}.${sessionId}.`;
  return key.startsWith(prefix) && /^\d{1,15}-\d{1,15}(-\d{1,15}-\d{1,15})?$/.test(key.slice(prefix.length));
}
