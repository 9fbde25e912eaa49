/**
 * Turns issues of zod into sentences for the author of the invalid value. Commands, personas, scripts and
 * configurations all read their input through {@link readStrictly}.
 */
import type { z } from 'zod';
import { PROBLEMS_MAX } from './containers.ts';
import { droppedName } from './dropped-names.ts';
import { nearestWord } from './nearest-word.ts';

/** One problem of a value. */
export interface SchemaProblem {
  /** Member names and indexes from the root. For an unknown key, the last element is the key itself. */
  readonly path: readonly PropertyKey[];
  /**
   * `unknown_key`: the schema has no such key. `missing`: a required key is absent. `rule`: the value breaks a rule
   * beyond its type. `value`: any other value that does not fit.
   */
  readonly kind: 'unknown_key' | 'missing' | 'rule' | 'value';
  /**
   * The problem without its path: `is missing`, `must be a text, not a number`. For an unknown key only a suffix with
   * the nearest key, or empty.
   */
  readonly words: string;
}

/**
 * A value that fits its schema, or a list of problems with at least one member. Unknown keys come first. Of a value with
 * more than {@link PROBLEMS_MAX} problems, the list has the first ones.
 */
export type StrictlyRead<T> =
  | { readonly ok: true; readonly data: T }
  | { readonly ok: false; readonly problems: readonly [SchemaProblem, ...SchemaProblem[]] };

/** Reads a value by a schema. A member named `__proto__` that the schema drops is a problem too. Never throws. */
export function readStrictly<S extends z.ZodType>(schema: S, value: unknown): StrictlyRead<z.output<S>> {
  const parsed = schema.safeParse(value, { error: plainWords });
  if (parsed.success) {
    const dropped = droppedName(value, parsed.data);
    if (dropped)
      return { ok: false, problems: [{ path: dropped, kind: 'value', words: 'this name is not allowed here' }] };
    return { ok: true, data: parsed.data };
  }
  const problems = firstOf(parsed.error.issues).flatMap((issue) => problemsOf(schema, value, issue));
  // A misspelt key also makes the right key missing: report the misspelt one first.
  const unknown = problems.filter(({ kind }) => kind === 'unknown_key');
  const others = problems.filter(({ kind }) => kind !== 'unknown_key');
  return { ok: false, problems: [...unknown, ...others] as [SchemaProblem, ...SchemaProblem[]] };
}

/** At most five problems as sentences with their paths: generated input could have thousands. */
export function problemSentences(problems: readonly SchemaProblem[]): string[] {
  return problems.slice(0, 5).map(({ kind, path, words }) => {
    const at = pathText(path);
    if (kind === 'unknown_key') return `unknown key "${at}"${words}`;
    return at === '' ? words : `${at}: ${words}`;
  });
}

/** Formats a path: `turns[2].calls[0].tool`. */
export function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : text === '' ? String(key) : `${text}.${String(key)}`),
    '',
  );
}

// ---- zod's issues as sentences; messages of the schemas themselves have priority ----

/** Option of zod's `parse`: messages for the author of the value. */
export const IN_PLAIN_WORDS = { error: plainWords } as const;

function plainWords(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined
        ? MISSING
        : `must be ${NOUNS[issue.expected] ?? issue.expected}, not ${kindOf(issue.input)}`;
    case 'invalid_value':
      return issue.input === undefined ? `${MISSING}; it is ${oneOf(issue.values)}` : `must be ${oneOf(issue.values)}`;
    case 'too_small':
      return outOfBounds(issue.origin, 'least', issue.minimum, issue.inclusive ?? true);
    case 'too_big':
      return outOfBounds(issue.origin, 'most', issue.maximum, issue.inclusive ?? true);
    case 'invalid_format':
      return FORMATS[issue.format] ?? (issue.pattern === undefined ? undefined : `must fit ${issue.pattern}`);
    case 'invalid_key':
      return 'this name is not allowed here';
    case 'invalid_union':
      return 'is none of what may stand here';
    default:
      return undefined;
  }
}

const MISSING = 'is missing';

const NOUNS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

const FORMATS: Readonly<Record<string, string>> = {
  url: 'must be an address that begins with http:// or https://',
  base64: 'must be base64',
  datetime: 'must be a time as in 2026-01-31T09:30:00Z',
};

function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return Number.isInteger(value) ? 'a number' : `${value}`;
  return NOUNS[typeof value] ?? `a ${typeof value}`;
}

function oneOf(values: readonly unknown[]): string {
  const [first, ...others] = values.map(String);
  return others.length === 0 ? `${first}` : `one of ${[first, ...others].join(', ')}`;
}

function outOfBounds(origin: string, word: 'least' | 'most', bound: number | bigint, inclusive: boolean): string {
  if (origin !== 'string' && origin !== 'array' && origin !== 'record')
    return inclusive ? `must be at ${word} ${bound}` : `must be ${word === 'least' ? 'more' : 'less'} than ${bound}`;
  const unit = origin === 'string' ? 'character' : 'entry';
  if (word === 'least' && Number(bound) === 1)
    return origin === 'string' ? 'must not be empty' : 'needs at least one entry';
  const units = Number(bound) === 1 ? unit : unit === 'entry' ? 'entries' : `${unit}s`;
  return word === 'least' ? `needs at least ${bound} ${units}` : `may have at most ${bound} ${units}`;
}

// ---- choice of the issues to report ----

type Issue = z.core.$ZodIssue;

/** The issues to describe: unknown keys come first. */
function firstOf(issues: readonly Issue[]): readonly Issue[] {
  if (issues.length <= PROBLEMS_MAX) return issues;
  const unknown = issues.filter(({ code }) => code === 'unrecognized_keys');
  const others = issues.filter(({ code }) => code !== 'unrecognized_keys');
  return [...unknown, ...others].slice(0, PROBLEMS_MAX);
}

/** The part of a zod schema that this file reads to look up keys. */
interface SchemaNode {
  readonly def: {
    readonly type: string;
    readonly shape?: Readonly<Record<string, SchemaNode>>;
    readonly innerType?: SchemaNode;
    readonly in?: SchemaNode;
    readonly options?: readonly SchemaNode[];
    readonly element?: SchemaNode;
    readonly valueType?: SchemaNode;
    readonly values?: readonly unknown[];
  };
}

function problemsOf(schema: unknown, root: unknown, issue: Issue): SchemaProblem[] {
  const { path } = issue;
  if (issue.code === 'unrecognized_keys') {
    const known = keysAt(schema as SchemaNode, path);
    return issue.keys.slice(0, PROBLEMS_MAX).map((key) => unknownKey([...path, key], known));
  }
  if (issue.code === 'invalid_union') return ofUnion(schema as SchemaNode, root, issue);
  if (issue.code === 'invalid_key') {
    const words = `this name ${issue.issues[0]?.message ?? 'is not allowed here'}`;
    return [{ path, kind: 'value', words }];
  }
  const value = valueAt(root, path);
  const kind = issue.code === 'custom' ? 'rule' : value === undefined ? 'missing' : 'value';
  const isNoObject = issue.code === 'invalid_type' && issue.expected === 'object' && value !== undefined;
  return [isNoObject ? ofAnotherKind(schema as SchemaNode, path, value) : { path, kind, words: issue.message }];
}

function unknownKey(path: readonly PropertyKey[], known: readonly string[]): SchemaProblem {
  const key = String(path.at(-1));
  const meant = nearestWord(key, known);
  return { path, kind: 'unknown_key', words: meant === null ? '' : `; did you mean "${meant}"?` };
}

/**
 * The problems of a value that fits no alternative of a union; the issue itself names no member. The first that
 * applies:
 * - a missing or wrong discriminator
 * - a value of another type than all alternatives
 * - the keys that no alternative has
 * - the keys of which one is needed, if several alternatives have all keys of the value and lack only a key
 * - the issues of the alternative that was probably meant: it has all keys of the value, and an issue deepest in the
 *   value
 * - keys of different alternatives that do not go together
 */
function ofUnion(schema: SchemaNode, root: unknown, issue: Extract<Issue, { code: 'invalid_union' }>): SchemaProblem[] {
  const { path, errors } = issue;
  if (errors.length === 0) return ofDiscriminator(schema, root, path);
  const options = optionsAt(schema, path);
  const alternatives = errors.filter((issues) => !issues.some(isOfAnotherType));
  if (alternatives.length === 0) return [ofAnotherKind(schema, path, valueAt(root, path))];
  const unknown = alternatives.map((issues) => new Set(unknownKeysOf(issues)));
  const nowhere = [...(unknown[0] ?? [])].filter((key) => unknown.every((keys) => keys.has(key)));
  const keys = options.flatMap((option) => keysAt(option, []));
  if (nowhere.length > 0) return nowhere.slice(0, PROBLEMS_MAX).map((key) => unknownKey([...path, key], keys));
  const meant = alternatives.filter((_, index) => unknown[index]?.size === 0);
  const beneath = (issues: readonly Issue[]): Issue[] =>
    issues.map((inner) => ({ ...inner, path: [...path, ...inner.path] }) as Issue);
  if (meant.length > 1 && meant.every(lacksOnly)) {
    const needed = [...new Set(meant.flatMap((issues) => issues.map((inner) => String(inner.path[0]))))];
    return [{ path, kind: 'missing', words: `needs one of ${needed.join(', ')}` }];
  }
  const [first] = meant.sort((one, other) => depthOf(other) - depthOf(one));
  if (first) return beneath(firstOf(first)).flatMap((inner) => problemsOf(schema, root, inner));
  const given = valueAt(root, path);
  const among = Object.keys(typeof given === 'object' && given !== null ? given : {}).slice(0, PROBLEMS_MAX);
  return [{ path, kind: 'rule', words: `these keys do not go together: ${among.join(', ')}` }];
}

function ofAnotherKind(schema: SchemaNode, path: readonly PropertyKey[], value: unknown): SchemaProblem {
  const kinds = [...new Set(optionsAt(schema, path).map(shapeInWords))].join(' or ');
  if (value === undefined) return { path, kind: 'missing', words: `${MISSING}; it is ${kinds}` };
  return { path, kind: 'value', words: `must be ${kinds}, not ${kindOf(value)}` };
}

function ofDiscriminator(schema: SchemaNode, root: unknown, path: readonly PropertyKey[]): SchemaProblem[] {
  const key = String(path.at(-1));
  const words = optionsAt(schema, path.slice(0, -1)).flatMap((option) => shapeOf(option)[key]?.def.values ?? []);
  const isThere = valueAt(root, path) !== undefined;
  if (!isThere) return [{ path, kind: 'missing', words: `${MISSING}; it is ${oneOf(words)}` }];
  return [{ path, kind: 'value', words: `must be ${oneOf(words)}` }];
}

const isOfAnotherType = (issue: Issue) => issue.code === 'invalid_type' && issue.path.length === 0;
const unknownKeysOf = (issues: readonly Issue[]): string[] =>
  issues.flatMap((issue) => (issue.code === 'unrecognized_keys' && issue.path.length === 0 ? issue.keys : []));
const lacksOnly = (issues: readonly Issue[]) => issues.every(({ message }) => message.startsWith(MISSING));
const depthOf = (issues: readonly Issue[]) => Math.max(...issues.map(({ path }) => path.length));

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let value = root;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

// ---- looking up a schema ----

/** The alternatives of the schema at a path: one element without a union, none if the schema has no such path. */
function optionsAt(schema: SchemaNode, path: readonly PropertyKey[]): SchemaNode[] {
  const { def } = schema;
  const inner = def.innerType ?? def.in;
  if (inner) return optionsAt(inner, path);
  if (def.options) return def.options.flatMap((option) => optionsAt(option, path));
  const [step, ...rest] = path;
  if (step === undefined) return [schema];
  const next = def.shape?.[String(step)] ?? def.element ?? def.valueType;
  return next ? optionsAt(next, rest) : [];
}

/** The keys that an object at this path may have, in any alternative. */
function keysAt(schema: SchemaNode, path: readonly PropertyKey[]): string[] {
  return optionsAt(schema, path).flatMap((option) => Object.keys(shapeOf(option)));
}

function shapeOf({ def }: SchemaNode): Readonly<Record<string, SchemaNode>> {
  return def.shape ?? {};
}

const KEYS_NAMED_MAX = 8;

function shapeInWords(schema: SchemaNode): string {
  const noun = NOUNS[schema.def.type] ?? schema.def.type;
  const keys = Object.keys(shapeOf(schema));
  if (keys.length === 0) return noun;
  return `${noun} with ${keys.slice(0, KEYS_NAMED_MAX).join(', ')}${keys.length > KEYS_NAMED_MAX ? ', …' : ''}`;
}
