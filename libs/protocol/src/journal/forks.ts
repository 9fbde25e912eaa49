/**
 * Copies of journals: what a fork is asked for, where a copied journal says that it comes from, and what its first owner
 * is told. See the guide on replay and fork.
 */
import * as z from 'zod';
import { StoredActor } from '../commands/actor.ts';
import { CHOICE_FIELDS, refineModelChoice } from '../commands/model-choice.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { ID_PATTERN } from '../wire/ids.ts';
import { JsonObject } from '../wire/json.ts';
import { hasVisibleText } from '../wire/unicode-text.ts';

const Prompt = z.string().refine(hasVisibleText, { error: 'must not be empty' });
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** The key of `verdicts` that stands for every hook which is not named. */
export const EVERY_HOOK = '*';

// A record of zod's own would lose a hook of the name __proto__.
const Verdicts: z.ZodType<JsonObject, Readonly<Record<string, unknown>>> = z
  .custom<Record<string, unknown>>((value) => JsonObject.safeParse(value).success, {
    error: 'must be an object of what hooks return, by their names',
    abort: true,
  })
  .meta({ type: 'object', additionalProperties: {} })
  .transform((verdicts) => verdicts as JsonObject)
  .superRefine((verdicts, context) => {
    const refuse = (message: string, path: string[] = []) => context.addIssue({ code: 'custom', path, message });
    const names = Object.keys(verdicts);
    if (names.length === 0) refuse('names no hook');
    if (names.length > BOUNDS.hooksMax) refuse('names too many hooks');
    for (const name of names)
      if (name !== EVERY_HOOK && !ID_PATTERN.test(name))
        refuse(`is not a hook name: 1 to 64 characters of A-Z a-z 0-9 _ -, or ${EVERY_HOOK} for all others`, [name]);
  });

/**
 * What is to be otherwise in a fork: `prompt`, `verdicts` or `result` in its last copied record, persona and model from
 * there on. At least one member; of the first three only one, as a record is only one of these things.
 */
export const ForkChanges = z
  .strictObject({
    /** Another text of the message that record n brings; where the session has ended at n, what it is prompted with next. */
    prompt: Prompt.optional(),
    ...CHOICE_FIELDS,
    /** What hooks return in record n instead, by registration, as a handler would return it; `*` is all that are not named. */
    verdicts: Verdicts.optional(),
    /** What the call of record n returned instead. */
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
/** See {@link ForkChanges}. */
export type ForkChanges = z.infer<typeof ForkChanges>;
/** {@link ForkChanges} as a person writes them, before defaults. */
export type ForkChangesInput = z.input<typeof ForkChanges>;

/** What `start` says of a fork: a session of the same tenant, the record up to which it is copied, what is otherwise. */
export const ForkRequest = z.strictObject({
  session: z.string().regex(ID_PATTERN),
  n: z.number().int().positive(),
  changes: ForkChanges.optional(),
});
/** See {@link ForkRequest}. */
export type ForkRequest = z.infer<typeof ForkRequest>;

/** Calls that only the changed record begins: nobody has sent them, in the origin neither. */
const unsent = z.array(z.string()).min(1).max(BOUNDS.callsPerBatchMax).optional();
const Ancestor = { session: z.string(), n: z.number().int().positive(), hash: sha256 };

/** The origin of a copied journal, recorded in the input of its first record. */
export const CopyOrigin = z.strictObject({
  how: z.enum(['fork', 'import']),
  /** The session whose first `n` records are copied, and the hash of the last of them. */
  ...Ancestor,
  /** The command that asked for the fork; an import has none. */
  command_id: z.string().optional(),
  actor: StoredActor.optional(),
  receipt_to: z.string().optional(),
  /** The message id of that command. */
  message_id: z.string().optional(),
  /** What is otherwise in record `n` and from there on. */
  changes: ForkChanges.optional(),
  unsent,
  /** What the session, which has ended at `n`, is prompted with next. */
  prompt: Prompt.optional(),
  /** Where that journal was copied from itself, the newest origin first. */
  before: z.array(z.strictObject(Ancestor)).max(BOUNDS.originsNamedMax).optional(),
});
/** See {@link CopyOrigin}. */
export type CopyOrigin = z.infer<typeof CopyOrigin>;

/** Settings that a fork changes from its last copied record on, or a prompt for its run and those after it. */
export const ChangedSettings = z.strictObject({
  ...CHOICE_FIELDS,
  /** A mode of the persona's; null for none. */
  mode: z.string().regex(ID_PATTERN).nullable().optional(),
});
/** See {@link ChangedSettings}. */
export type ChangedSettings = z.infer<typeof ChangedSettings>;

/** What the first owner of a fork begins with: nothing of what was under way in the origin goes on here. */
export const AfterCopy = z.strictObject({
  /** The fork itself. Forks of forks copy such inputs of their ancestors. */
  session: z.string(),
  unsent,
  settings: ChangedSettings.optional(),
  prompt: z.strictObject({ command_id: z.string(), text: Prompt, actor: StoredActor.optional() }).optional(),
  /** Why the copy could not be completed. */
  error: z.strictObject({ code: z.string(), message: z.string() }).optional(),
});
/** See {@link AfterCopy}. */
export type AfterCopy = z.infer<typeof AfterCopy>;
