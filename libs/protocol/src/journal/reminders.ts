/** Reminders: what the host keeps before a model's eyes without speaking as its user. */
import * as z from 'zod';

/**
 * The role of a reminder in the prompt, as far as the provider supports it. `system` and `developer`: the role for
 * instructions within a conversation. `user_block`: a part of the user's turn. `ephemeral_cache`: such a part, after
 * which the provider may cache the prompt.
 */
export const RoleHint = z.enum(['system', 'developer', 'user_block', 'ephemeral_cache']);
/** See {@link RoleHint}. */
export type RoleHint = z.infer<typeof RoleHint>;

/** Which descendants of a session are born with its reminder: direct children, all of them, or none. */
export const Propagate = z.enum(['session', 'all', 'none']);
/** See {@link Propagate}. */
export type Propagate = z.infer<typeof Propagate>;

const Tag = z.string().trim().min(1).max(64);

/** The members of a reminder without its text and mode. All have defaults. */
export const REMINDER_FIELDS = {
  /** Words by which interfaces and hooks may sort reminders. */
  tags: z.array(Tag).max(32).default([]),
  /** How many turns show it. A turn that has shown it counts when it ends, and so does a compaction. */
  ttl_turns: z.number().int().min(1).max(1_000_000).optional(),
  /** Whether it outlives a compaction that takes away the part of the transcript where it stands. */
  preserve_on_compact: z.boolean().default(false),
  propagate: Propagate.default('session'),
  role_hint: RoleHint.default('system'),
} as const;

/** The same as events hold it: every default written out. */
export const STORED_REMINDER_FIELDS = {
  tags: z.array(z.string()),
  dedupe_key: z.string().optional(),
  ttl_turns: z.number().int().positive().optional(),
  preserve_on_compact: z.boolean(),
  propagate: Propagate,
  role_hint: RoleHint,
} as const;

const Stored = z.strictObject(STORED_REMINDER_FIELDS);
/** The members of a stored reminder without its text. */
export type ReminderFields = Readonly<z.infer<typeof Stored>>;

/** Why a reminder is shown no longer: its turns are over, a compaction took it away, or someone revoked it. */
export const ExpiryReason = z.enum(['ttl', 'compaction', 'cleared']);
/** See {@link ExpiryReason}. */
export type ExpiryReason = z.infer<typeof ExpiryReason>;
