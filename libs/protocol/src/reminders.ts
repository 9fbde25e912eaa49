/** Reminders: what the host keeps before a model's eyes without speaking as its user. */
import * as z from 'zod';

/**
 * In which voice a model hears a reminder, as far as its provider has one: `system` and `developer` in the role that
 * providers give to instructions in mid-conversation, `user_block` as a part of the user's turn, `ephemeral_cache` as
 * such a part behind which the provider may cache the prompt.
 */
export const RoleHint = z.enum(['system', 'developer', 'user_block', 'ephemeral_cache']);
/** See {@link RoleHint}. */
export type RoleHint = z.infer<typeof RoleHint>;

/** Which descendants of a session are born with its reminder: direct children, all of them, or none. */
export const Propagate = z.enum(['session', 'all', 'none']);
/** See {@link Propagate}. */
export type Propagate = z.infer<typeof Propagate>;

const Tag = z.string().trim().min(1).max(64);

/** What a sender may say of a reminder beside its text and mode; what is left out has its default. */
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
/** What is known of a reminder beside its text. */
export type ReminderFields = Readonly<z.infer<typeof Stored>>;

/** Why a reminder is shown no longer: its turns are over, a compaction took it away, or someone revoked it. */
export const ExpiryReason = z.enum(['ttl', 'compaction', 'cleared']);
/** See {@link ExpiryReason}. */
export type ExpiryReason = z.infer<typeof ExpiryReason>;
