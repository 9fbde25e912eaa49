/**
 * The status of a session, in replies to `get_state` and in lists.
 */
import * as z from 'zod';
import { INJECTION_VERBS, Mode } from '../catalogues/seams.ts';
import { StoredActor } from '../commands/actor.ts';
import { OnTimeout } from '../commands/suspension-request.ts';
import { Budget } from '../personas/budgets.ts';
import { MessageSource } from '../personas/crews.ts';
import { Json } from '../wire/json.ts';
import { StopReason } from './events.ts';
import { Usage } from './inputs.ts';
import { StateValue } from './record.ts';
import { STORED_REMINDER_FIELDS } from './reminders.ts';
import type { Tombstone } from './tombstone.ts';

/** A call that waits for an approval. */
const PendingApproval = z.strictObject({
  call_id: z.string(),
  tool: z.string(),
  args: Json,
  requested_by: z.string(),
  /** Time of the request, and its expiry; ISO 8601. */
  since: z.string(),
  expires_at: z.string().optional(),
  question: z.string().optional(),
});

/** The status of a session after its newest record. */
export const SessionStatus = z.strictObject({
  session_id: z.string(),
  n: z.number().int().positive(),
  epoch: z.number().int().positive(),
  at: z.string(),
  state: StateValue,
  run: z.number().int().nonnegative(),
  turn: z.number().int().nonnegative(),
  persona: z.string().nullable(),
  /** The pinned version. */
  persona_version: z.string().nullable().default(null),
  model: z.string().nullable(),
  stop_reason: StopReason.nullable(),
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
  /** The number of the record with the failure. */
  failed_at: z.number().int().positive().nullable(),
  /** Of all runs. */
  usage: Usage,
  /** `usage`, and the usage of all ended child sessions. */
  tree_usage: Usage,
  /** The parent session and its call; null without a parent, and for a copy of a child session. */
  parent: z
    .strictObject({ session: z.string(), call_id: z.string(), root: z.string(), depth: z.number().int().positive() })
    .nullable(),
  /** Child sessions that have not ended. */
  children: z.array(z.strictObject({ session: z.string(), persona: z.string(), call_id: z.string() })),
  /** Estimated size of the next prompt, the context window, and the numbers of messages and of compactions so far. */
  context: z.strictObject({
    tokens: z.number().int().nonnegative(),
    window: z.number().int().positive().nullable(),
    /** Source of the window. `overflow`: the provider refused a prompt of this size as too long. */
    window_from: z.enum(['persona', 'model', 'default', 'overflow']).nullable(),
    messages: z.number().int().nonnegative(),
    compactions: z.number().int().nonnegative(),
  }),
  /** USD of all runs; null if a price is unknown. */
  cost_usd: z.number().nonnegative().nullable(),
  /** Usage of the run's budgets as of the newest record, in tokens, USD or milliseconds. */
  budgets: z.array(z.strictObject({ budget: Budget, used: z.number().nonnegative(), limit: z.number().positive() })),
  calls: z.array(z.strictObject({ call_id: z.string(), tool: z.string(), status: z.string() })),
  approvals: z.array(PendingApproval),
  /** Null if the session is not suspended. */
  suspended: z
    .strictObject({
      since: z.string(),
      reason: z.string().nullable(),
      /** When the session wakes, and what happens then. */
      until: z.string().nullable(),
      on_timeout: OnTimeout.nullable(),
      /** The signal that wakes it. */
      signal: z.string().nullable(),
      /** Whether the session suspended itself: by the tool `park`, or by a failed step of its persona. */
      by_itself: z.boolean(),
    })
    .nullable(),
  /** A model step waits for an instance of its persona, or for the end of a pause. Absent otherwise. */
  waiting_for_persona: z
    .strictObject({
      persona: z.string(),
      version: z.string(),
      why: z.enum(['unserved', 'paused']),
      since: z.string(),
      /** When the limit of the wait is over (`afterPersonaWaitExpiry`, libs/turn); null without a limit. */
      until: z.string().nullable(),
    })
    .optional(),
  /** When a suspended session or an idle daemon wakes; null without a timer. */
  wakes_at: z.string().nullable(),
  pending: z.array(
    z.strictObject({
      command_id: z.string(),
      kind: z.enum(INJECTION_VERBS),
      body: z.string(),
      mode: Mode.optional(),
      actor: StoredActor.optional(),
      /** When the session recorded it, ISO 8601. */
      at: z.string(),
      /** The id of a later command that replaced the text. */
      replaced_by: z.string().optional(),
      /** The session that sent it. */
      from: MessageSource.optional(),
      dedupe_key: z.string().optional(),
      tags: STORED_REMINDER_FIELDS.tags.optional(),
      ttl_turns: STORED_REMINDER_FIELDS.ttl_turns,
      preserve_on_compact: STORED_REMINDER_FIELDS.preserve_on_compact.optional(),
      propagate: STORED_REMINDER_FIELDS.propagate.optional(),
      role_hint: STORED_REMINDER_FIELDS.role_hint.optional(),
    }),
  ),
  /** Delivered and inherited reminders. Every prompt contains them until they expire. */
  reminders: z.array(
    z.strictObject({
      command_id: z.string(),
      body: z.string(),
      actor: StoredActor.optional(),
      ...STORED_REMINDER_FIELDS,
      /** Number of further turns that show it; absent without `ttl_turns`. */
      ttl_left: z.number().int().nonnegative().optional(),
    }),
  ),
});
export type SessionStatus = z.infer<typeof SessionStatus>;

/** A session in a list: the content of its newest record, and on request the status by a host. */
export const ListedSessionDocument = z.strictObject({
  session_id: z.string(),
  n: z.number().int().nonnegative().meta({ description: 'Its newest record.' }),
  at: z.string().meta({ description: 'When that was written, ISO 8601.' }),
  state: StateValue,
  stop_reason: StopReason.nullable(),
  unreadable: z.string().optional().meta({ description: 'Why the newest record cannot be read.' }),
  deleted: z.strictObject({ by: z.string().nullable(), reason: z.string().nullable() }).optional(),
  details: SessionStatus.pick({ persona: true, model: true, turn: true, cost_usd: true, usage: true, parent: true })
    .extend({ approvals: z.number().int().nonnegative() })
    .nullable()
    .optional()
    .meta({ description: 'With `details` and `persona`; null where no host has answered.' }),
});
export type ListedSessionDocument = z.infer<typeof ListedSessionDocument>;

/** The entry of a session in the index: what lists of sessions and lists of pending approvals show. */
export const SessionIndexEntry = ListedSessionDocument.extend({
  approvals: z
    .array(PendingApproval)
    .optional()
    .meta({ description: 'Its pending approvals; absent if there are none, or if they are too large for the index.' }),
});
export type SessionIndexEntry = z.infer<typeof SessionIndexEntry>;

/** Maximum size of the pending approvals in an entry, UTF-8 bytes of their JSON. Larger ones are read from the session. */
const ENTRY_APPROVALS_MAX_BYTES = 8_192;

/** The entry of a session, from its status. */
export function indexEntryOf(status: SessionStatus): SessionIndexEntry {
  const { approvals } = status;
  const listed = listedSessionOf(status);
  const isInEntry =
    approvals.length > 0 && new TextEncoder().encode(JSON.stringify(approvals)).length <= ENTRY_APPROVALS_MAX_BYTES;
  return isInEntry ? { ...listed, approvals } : listed;
}

/** What lists show of a session, from its status. `details` are always set. */
export function listedSessionOf(status: SessionStatus): ListedSessionDocument {
  const { session_id, n, at, state, stop_reason, persona, model, turn, cost_usd, usage, parent, approvals } = status;
  const details = { persona, model, turn, cost_usd, usage, parent, approvals: approvals.length };
  return { session_id, n, at, state, stop_reason, details };
}

/** What lists show of a deleted session: when it was deleted, how many records it had, by whom and why. */
export function deletedSessionOf(sessionId: string, tombstone: Tombstone): ListedSessionDocument {
  const { records: n, deleted_at: at, deleted_by, reason = null } = tombstone;
  const deleted = { by: deleted_by?.name ?? null, reason };
  return { session_id: sessionId, n, at, state: 'deleted', stop_reason: null, deleted };
}
