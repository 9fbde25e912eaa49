/**
 * Reminders: texts of the host that stay in the prompts of a model. They are marked, so that a model does not read them
 * as texts of the user.
 */
import * as z from 'zod';
import { listOf } from '../wire/containers.ts';

/**
 * The role of a reminder in the prompt, if the provider supports it. `system` and `developer`: the role for
 * instructions within a conversation. `user_block`: a part of a user message. `ephemeral_cache`: such a part, after
 * which the provider may cache the prompt.
 */
export const RoleHint = z.enum(['system', 'developer', 'user_block', 'ephemeral_cache']);
export type RoleHint = z.infer<typeof RoleHint>;

/** The descendants of a session that inherit the reminder: direct children, all of them, or none. */
export const Propagate = z.enum(['session', 'all', 'none']);
export type Propagate = z.infer<typeof Propagate>;

const Tag = z.string().trim().min(1).max(64);

/** The members of a reminder without its text, mode and dedupe key. All are optional. */
export const REMINDER_FIELDS = {
  /** Labels by which interfaces and hooks may sort reminders. */
  tags: listOf(Tag).max(32).default([]),
  /** Number of turns that show the reminder. A turn counts when it ends; a compaction counts too. */
  ttl_turns: z.number().int().min(1).max(1_000_000).optional(),
  /** Whether the reminder survives a compaction of the messages around it. */
  preserve_on_compact: z.boolean().default(false),
  propagate: Propagate.default('session'),
  role_hint: RoleHint.default('system'),
} as const;

/** The same members in events, with defaults filled in, and the dedupe key. */
export const STORED_REMINDER_FIELDS = {
  tags: listOf(z.string()),
  dedupe_key: z.string().optional(),
  ttl_turns: z.number().int().positive().optional(),
  preserve_on_compact: z.boolean(),
  propagate: Propagate,
  role_hint: RoleHint,
} as const;

const Stored = z.strictObject(STORED_REMINDER_FIELDS);
/** The members of a stored reminder without its text. */
export type ReminderFields = Readonly<z.infer<typeof Stored>>;

/** Why a reminder is no longer shown: its turns are over, a compaction removed it, or a sender revoked it. */
export const ExpiryReason = z.enum(['ttl', 'compaction', 'cleared']);
export type ExpiryReason = z.infer<typeof ExpiryReason>;
