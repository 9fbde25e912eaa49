/**
 * Stop conditions end a run early: a text in the answer, a call of a tool, or a predicate in code. Regular expressions
 * are RE2's and linear in the text.
 */
import * as z from 'zod';
import { Glob } from '../tools/patterns.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { ID_PATTERN } from '../wire/ids.ts';
import { regexMatches, regexProblem } from '../wire/regular-expressions.ts';

const REGEX = /^\/(.+)\/([ims]*)$/s;

/** A part of an answer's text: literal, or `/regex/` with the flags i, m and s. */
const StopText = z
  .string()
  .min(1)
  .max(BOUNDS.patternMaxChars)
  .superRefine((text, context) => {
    const source = regexOf(text);
    const problem = source === null ? null : regexProblem(source);
    if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  });

/** One condition. */
export const StopCondition = z.union([
  z.strictObject({ text: StopText }),
  /** Glob on names of tools. True after a batch in which a call of such a tool has started. */
  z.strictObject({ tool: Glob.min(1) }),
  /** The name of a predicate that the host's program registered. */
  z.strictObject({ predicate: z.string().regex(ID_PATTERN) }),
]);
export type StopCondition = z.infer<typeof StopCondition>;

/** Whether an answer's text satisfies a text condition. False if the text is too long for the regular expression. */
export function textStops(condition: string, text: string): boolean {
  const source = regexOf(condition);
  return source === null ? text.includes(condition) : regexMatches(source, text) === true;
}

function regexOf(text: string): string | null {
  const [, source, flags = ''] = REGEX.exec(text) ?? [];
  if (source === undefined) return null;
  return flags === '' ? source : `(?${flags})${source}`;
}
