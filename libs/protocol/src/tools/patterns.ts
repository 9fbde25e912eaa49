/**
 * Patterns on tools, on their arguments and on the payloads of hooks. They are globs, or conditions: `path == "v"`,
 * `path != "v"` and `path =~ "regex"`. Numbers and booleans have no quotes and compare by value: `path == 5`,
 * `path != true`.
 */
import * as z from 'zod';
import { BOUNDS } from '../wire/bounds.ts';
import type { Json } from '../wire/json.ts';
import { type RegexBudget, regexMatches, regexProblem } from '../wire/regular-expressions.ts';

/** A parsed condition on JSON: on the arguments of a call, or on the payload of a hook. */
export interface Condition {
  /** Names of members from the root; for items of lists their indexes. */
  readonly path: readonly string[];
  readonly operator: '==' | '!=' | '=~';
  /** A regular expression if the operator is `=~`. */
  readonly value: string | number | boolean;
}

const CONDITION = /^\s*([A-Za-z_][\w-]*(?:\.[\w-]+)*)\s*(==|!=|=~)\s*("(?:[^"\\]|\\.)*"|-?\d[\w.+-]*|true|false)\s*$/;

/**
 * Parses `path == "v"`, `path != "v"` or `path =~ "regex"`; instead of `"v"` also a number, `true` or `false`.
 * @returns the condition, or a sentence with the problem.
 */
export function parseCondition(text: string): Condition | string {
  if (text.length > BOUNDS.patternMaxChars)
    return `a pattern may have ${BOUNDS.patternMaxChars} characters, this one has ${text.length}`;
  const match = CONDITION.exec(text);
  if (!match)
    return `expected path == value, path != value or path =~ "regex", with a "text", a number, true or false as value, got ${JSON.stringify(text)}`;
  let value: Condition['value'];
  try {
    value = JSON.parse(match[3] as string) as Condition['value'];
  } catch {
    return `the value ${match[3]} is not a JSON string, number or boolean`;
  }
  if (typeof value === 'number' && !Number.isFinite(value)) return `the number ${match[3]} is too large`;
  const operator = match[2] as Condition['operator'];
  if (operator === '=~') {
    if (typeof value !== 'string') return `=~ needs a regular expression in quotes, got ${match[3]}`;
    const problem = regexProblem(value);
    if (problem) return problem;
  }
  return { path: (match[1] as string).split('.'), operator, value };
}

/**
 * Whether a payload satisfies a condition. A number or boolean in the condition equals only the same value in the
 * payload. A text in the condition is compared with the payload's text, or with the JSON of another value:
 * `count == "3"`. A missing member satisfies only `!=`.
 * @returns null if the budget for regular expressions does not cover the evaluation.
 */
export function conditionHolds(condition: Condition, payload: Json, budget?: RegexBudget): boolean | null {
  let value: Json | undefined = payload;
  for (const key of condition.path) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, key)) {
      value = undefined;
      break;
    }
    value = (value as { [key: string]: Json })[key];
  }
  if (typeof condition.value !== 'string') return (value === condition.value) === (condition.operator === '==');
  const text = value === undefined ? undefined : typeof value === 'string' ? value : JSON.stringify(value);
  if (condition.operator === '==') return text === condition.value;
  if (condition.operator === '!=') return text !== condition.value;
  return text !== undefined && regexMatches(condition.value, text, budget);
}

/**
 * Whether a glob matches a name. `*` matches any sequence of characters, `?` any single one; `""` matches everything.
 */
export function globMatches(glob: string, name: string): boolean {
  if (glob === '' || glob === '*') return true;
  // Two-pointer match with one backtracking point: at worst glob × name, never exponential.
  let g = 0;
  let n = 0;
  let star = -1;
  let mark = 0;
  while (n < name.length) {
    if (g < glob.length && (glob[g] === '?' || glob[g] === name[n]) && glob[g] !== '*') {
      g++;
      n++;
    } else if (glob[g] === '*') {
      star = g++;
      mark = n;
    } else if (star >= 0) {
      g = star + 1;
      n = ++mark;
    } else return false;
  }
  while (glob[g] === '*') g++;
  return g === glob.length;
}

/** A parsed pattern of a hook. */
export type HookPattern =
  | { readonly kind: 'all' }
  | { readonly kind: 'glob'; readonly glob: string }
  | { readonly kind: 'condition'; readonly condition: Condition };

const NO_GLOB = /[[\]{}()|^$\\'"`=!<>&,;\s]/;

/** The problem of a hook's glob, or null. A text that only resembles a glob would silently match nothing. */
export function hookGlobProblem(text: string): string | null {
  return NO_GLOB.test(text) ? `${JSON.stringify(text)} is not a glob: in a glob only * and ? are special` : null;
}

/**
 * Parses the pattern of a hook: `""` or `*` for all, a glob on the target, or a condition on the payload.
 * @returns the pattern, or a sentence with the problem.
 */
export function parseHookPattern(text: string): HookPattern | string {
  if (text.length > BOUNDS.patternMaxChars)
    return `a pattern may have ${BOUNDS.patternMaxChars} characters, this one has ${text.length}`;
  const trimmed = text.trim();
  if (trimmed === '' || trimmed === '*') return { kind: 'all' };
  if (!NO_GLOB.test(trimmed)) return { kind: 'glob', glob: trimmed };
  const condition = parseCondition(text);
  if (typeof condition === 'string')
    return `neither a glob, in which only * and ? are special, nor a condition: ${condition}`;
  return { kind: 'condition', condition };
}

const hookPatterns = new Map<string, HookPattern | string>();
const CACHE_MAX = 512;

/**
 * Whether the pattern of a hook matches; an invalid pattern does not.
 * @param target what a glob is compared with, such as the name of a tool.
 * @param payload undefined if it is not known yet: a condition then counts as true.
 * @param budget a condition that it does not cover counts as true.
 */
export function hookPatternMatches(
  text: string,
  target: string,
  payload: Json | undefined,
  budget?: RegexBudget,
): boolean {
  let pattern = hookPatterns.get(text);
  if (pattern === undefined) {
    pattern = parseHookPattern(text);
    if (hookPatterns.size >= CACHE_MAX) hookPatterns.clear();
    hookPatterns.set(text, pattern);
  }
  if (typeof pattern === 'string') return false;
  if (pattern.kind === 'condition')
    return payload === undefined || conditionHolds(pattern.condition, payload, budget) !== false;
  return pattern.kind === 'all' || globMatches(pattern.glob, target);
}

/**
 * A glob on names of tools, at most {@link BOUNDS}.patternMaxChars long. Characters that no name can contain are
 * rejected: a rule with them would silently match nothing, and not deny what it should.
 */
export const Glob = z
  .string()
  .max(BOUNDS.patternMaxChars)
  .regex(/^[\w*?-]*$/, {
    error: 'a glob on tool names has only A-Z a-z 0-9 _ - and * for any characters, ? for any one',
  });

/** The text of a valid condition. The output is the text, not the parsed condition. */
export const ConditionText = z.string().superRefine((text, context) => {
  const parsed = parseCondition(text);
  if (typeof parsed === 'string') context.addIssue({ code: 'custom', message: parsed });
});
