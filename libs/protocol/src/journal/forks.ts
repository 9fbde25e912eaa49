/**
 * Copies of journals: the request for a fork, the origin of a copied journal, and the first input of the copy's owner.
 * `docs/guides/replay-and-fork.md` explains them.
 */
import * as z from 'zod';
import { StoredActor } from '../commands/actor.ts';
import { CHOICE_FIELDS, refineModelChoice, STORED_CHOICE_FIELDS } from '../commands/model-choice.ts';
import { HookId } from '../hooks/hook-registrations.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { listOf } from '../wire/containers.ts';
import { ID_PATTERN } from '../wire/ids.ts';
import { JsonObject } from '../wire/json.ts';
import { hasVisibleText } from '../wire/unicode-text.ts';

const Prompt = z.string().refine(hasVisibleText, { error: 'must not be empty' });
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** The key of `verdicts` for all hooks without a key of their own. */
export const EVERY_HOOK = '*';

const NOT_A_HOOK = `is not a hook id: ID or PERSONA:ID, each 1 to 64 characters of A-Z a-z 0-9 _ -, or ${EVERY_HOOK} for all others`;

// Not a record of zod, which would drop a hook named __proto__.
const Verdicts: z.ZodType<JsonObject, Readonly<Record<string, unknown>>> = z
  .custom<Record<string, unknown>>((value) => JsonObject.safeParse(value).success, {
    error: 'must be an object of what hooks return, by their ids',
    abort: true,
  })
  .meta({ type: 'object', additionalProperties: {} })
  .transform((verdicts) => verdicts as JsonObject)
  .superRefine((verdicts, context) => {
    const refuse = (message: string, path: string[] = []) => context.addIssue({ code: 'custom', path, message });
    const names = Object.keys(verdicts);
    if (names.length === 0) refuse('names no hook');
    if (names.length > BOUNDS.hooksMax) return refuse('names too many hooks');
    for (const name of names) if (name !== EVERY_HOOK && !HookId.safeParse(name).success) refuse(NOT_A_HOOK, [name]);
  });

/**
 * The changes of a fork: `prompt`, `verdicts` or `result` in its last copied record, persona and model after it. At
 * least one member. Of the first three at most one, because a record has one kind of input.
 */
export const ForkChanges = z
  .strictObject({
    /** Replaces the text of the message in record n. If record n has none and the session has ended there: the next prompt. */
    prompt: Prompt.optional(),
    ...CHOICE_FIELDS,
    /**
     * Replaces the return values of hooks in record n, by the id of the registration, in the form that handlers return.
     * `*` applies to all others.
     */
    verdicts: Verdicts.optional(),
    /** Replaces the result of the call in record n. */
    result: z
      .union([
        z.string().transform((text) => ({ text, is_error: false })),
        z.strictObject({ text: z.string(), is_error: z.boolean().default(false) }),
      ])
      .optional(),
  })
  .superRefine((changes, context) => {
    if (Object.values(changes).every((value) => value === undefined))
      context.addIssue({ code: 'custom', path: [], message: 'changes nothing; omit it' });
    const atRecord = (['prompt', 'verdicts', 'result'] as const).filter((key) => changes[key] !== undefined);
    if (atRecord.length > 1) {
      const path = [atRecord[1] as string];
      context.addIssue({ code: 'custom', path, message: `cannot be combined with ${atRecord[0]}` });
    }
    refineModelChoice(changes, context);
  });
export type ForkChanges = z.infer<typeof ForkChanges>;
/** {@link ForkChanges} before defaults. */
export type ForkChangesInput = z.input<typeof ForkChanges>;

/** `fork` in a `start`: a session of the same tenant, the last record to copy, and the changes. */
export const ForkRequest = z.strictObject({
  session: z.string().regex(ID_PATTERN),
  n: z.number().int().positive(),
  changes: ForkChanges.optional(),
});
export type ForkRequest = z.infer<typeof ForkRequest>;

/**
 * Calls that only the changed record starts, or starts with other arguments than the original record. They were not
 * sent so far.
 */
const unsent = listOf(z.string()).min(1).max(BOUNDS.callsPerBatchMax).optional();
const Ancestor = { session: z.string(), n: z.number().int().positive(), hash: sha256 };

/** The origin of a copied journal, recorded in the input of its first record. */
export const CopyOrigin = z.strictObject({
  how: z.enum(['fork', 'import']),
  /** The session with the first `n` records, and the hash of the last of them. */
  ...Ancestor,
  /** The command that requested the fork; absent for an import. */
  command_id: z.string().optional(),
  actor: StoredActor.optional(),
  receipt_to: z.string().optional(),
  /** The message id of the command that requested the fork. */
  message_id: z.string().optional(),
  /** The changes in record `n` and after it. */
  changes: ForkChanges.safeExtend({ persona: STORED_CHOICE_FIELDS.persona }).optional(),
  unsent,
  /** The next prompt of the session, which has ended at `n`. */
  prompt: Prompt.optional(),
  /** The earlier origins of the copied journal, the newest first. */
  before: listOf(z.strictObject(Ancestor)).max(BOUNDS.originsNamedMax).optional(),
});
export type CopyOrigin = z.infer<typeof CopyOrigin>;

/** Settings that change: after the last copied record of a fork, or for the run of a prompt and later runs. */
export const ChangedSettings = z.strictObject({
  ...STORED_CHOICE_FIELDS,
  /** A mode of the persona; null for none. */
  mode: z.string().regex(ID_PATTERN).nullable().optional(),
});
export type ChangedSettings = z.infer<typeof ChangedSettings>;

/**
 * `after_copy` of the first owner's input `owned`, for a fork and for an import under a new id. What becomes of the
 * origin's unfinished work: `ownedAfterCopy` (copies.ts in libs/turn).
 */
export const AfterCopy = z.strictObject({
  /** The id of the copy. A copy of a copy contains the inputs of its ancestors too. */
  session: z.string(),
  unsent,
  settings: ChangedSettings.optional(),
  prompt: z.strictObject({ command_id: z.string(), text: Prompt, actor: StoredActor.optional() }).optional(),
  /** Why the copy is incomplete. */
  error: z.strictObject({ code: z.string(), message: z.string() }).optional(),
});
export type AfterCopy = z.infer<typeof AfterCopy>;
