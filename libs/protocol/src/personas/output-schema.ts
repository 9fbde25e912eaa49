/**
 * Structured output: the JSON Schema of a run's final answer, and the result of its validation.
 *
 * A request may contain a schema, so its cost is bounded before it is compiled: bytes, the number of subschemas after
 * expansion of every `$ref`, no recursion, and patterns that RE2 runs in linear time.
 */
import * as z from 'zod';
import { BOUNDS } from '../wire/bounds.ts';
import { canonicalJson } from '../wire/canonical-json.ts';
import { Json, JsonObject, unescapePointerKey } from '../wire/json.ts';
import { regexProblem } from '../wire/regular-expressions.ts';
import { pathText } from '../wire/schema-problems.ts';
import { cutText } from '../wire/unicode-text.ts';

/** A JSON Schema (draft 7 or 2020-12) of a final answer, within its bounds. */
export const OutputSchema: z.ZodType<JsonObject, JsonObject> = (
  JsonObject as z.ZodType<JsonObject, JsonObject>
).superRefine((schema, context) => {
  const problem = outputSchemaProblem(schema);
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
});
export type OutputSchema = z.infer<typeof OutputSchema>;

/** The pinned output schema of a session. */
export const PinnedOutput = z.strictObject({
  schema: JsonObject,
  /** Maximum of model turns for the repair of one answer. */
  repairs: z.number().int().min(0).max(BOUNDS.outputRepairsMax),
});
export type PinnedOutput = z.infer<typeof PinnedOutput>;

/** The result of the validation of an answer without calls: the value, or the problems. */
export const OutputCheck = z.union([
  z.strictObject({ value: Json }),
  z.strictObject({ problems: z.array(z.string()).min(1).max(BOUNDS.outputProblemsMax) }),
]);
export type OutputCheck = z.infer<typeof OutputCheck>;

/** The part of the system prompt about the output. */
export function outputInstruction(schema: JsonObject): string {
  return [
    '# Output',
    'When the work is done, answer with one JSON value that fits the JSON Schema below.',
    'That answer contains only the JSON: no introduction, no explanation, no code fence.',
    '',
    canonicalJson(schema),
  ].join('\n');
}

/** Keywords with one schema, a list of schemas, or schemas by name. */
const ONE = [
  'additionalItems',
  'additionalProperties',
  'contains',
  'else',
  'if',
  'items',
  'not',
  'propertyNames',
  'then',
  'unevaluatedItems',
  'unevaluatedProperties',
] as const;
const MANY = ['allOf', 'anyOf', 'items', 'oneOf', 'prefixItems'] as const;
const NAMED = ['$defs', 'definitions', 'dependencies', 'dependentSchemas', 'patternProperties', 'properties'] as const;
/** Keywords that refer to a schema elsewhere, which are not supported. */
const REFUSED = ['$anchor', '$dynamicAnchor', '$dynamicRef', '$recursiveAnchor', '$recursiveRef'] as const;

/** The types of JSON Schema. */
const TYPES = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'] as const;

/** The valid values of keywords. A misspelt value would make a schema accept every answer, or none. */
const VALUES: readonly (readonly [keywords: readonly string[], is: (value: Json) => boolean, words: string])[] = [
  [['type'], isTypes, `must be one of ${TYPES.join(', ')}, or a list of them`],
  [ONE.filter((keyword) => keyword !== 'items'), isSchema, 'must be a schema: an object, true or false'],
  [['items'], (value) => isSchema(value) || isSchemas(value), 'must be a schema, or a list of schemas'],
  [MANY.filter((keyword) => keyword !== 'items'), isSchemas, 'must be a list of schemas'],
  [NAMED, isObject, 'must be an object'],
  [['required'], isTexts, 'must be a list of names'],
  [['enum'], Array.isArray, 'must be a list of values'],
  [['maximum', 'minimum', 'exclusiveMaximum', 'exclusiveMinimum', 'multipleOf'], isNumber, 'must be a number'],
  [
    ['maxItems', 'minItems', 'maxLength', 'minLength', 'maxProperties', 'minProperties'],
    isCount,
    'must be a whole number',
  ],
  [['pattern'], (value) => typeof value === 'string', 'must be a string'],
];

function isTypes(value: Json): boolean {
  const isType = (one: Json) => TYPES.includes(one as 'array');
  return Array.isArray(value) ? value.length > 0 && value.every(isType) : isType(value);
}

function isSchemas(value: Json): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(isSchema);
}

function isTexts(value: Json): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

function isNumber(value: Json): boolean {
  return typeof value === 'number';
}

function isCount(value: Json): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function refuseValues(schema: JsonObject, path: readonly string[]): void {
  for (const [keywords, is, words] of VALUES) {
    for (const keyword of keywords) {
      const value = schema[keyword];
      if (value === undefined || is(value)) continue;
      const given = cutText(JSON.stringify(value), GIVEN_MAX_CHARS);
      throw new Refusal(`the output schema: ${pathText([...path, keyword])}: ${words}, not ${given}`);
    }
  }
}

const GIVEN_MAX_CHARS = 100;

/** A schema that is rejected. */
class Refusal extends Error {}

/**
 * Why a schema is invalid or exceeds its bounds, or null. Problems that need a validator are found at the start of a
 * run.
 */
export function outputSchemaProblem(schema: JsonObject): string | null {
  const bytes = new TextEncoder().encode(JSON.stringify(schema)).length;
  if (bytes > BOUNDS.outputSchemaMaxBytes)
    return `the output schema has ${bytes} bytes; the limit is ${BOUNDS.outputSchemaMaxBytes}`;
  try {
    const size = expandedSize(schema);
    return size <= BOUNDS.outputSchemasMax
      ? null
      : `the output schema has ${size} subschemas with every $ref expanded; the limit is ${BOUNDS.outputSchemasMax}`;
  } catch (error) {
    if (error instanceof Refusal) return error.message;
    throw error;
  }
}

/**
 * The number of subschemas after expansion of every `$ref`. Checks the keywords and their values on the way.
 * @throws Refusal for a schema that {@link outputSchemaProblem} rejects for anything but its size.
 */
export function expandedSize(root: JsonObject): number {
  const sizes = new Map<object, number | 'open'>();
  const sizeOf = (schema: Json | undefined, path: readonly string[]): number => {
    if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return 1;
    const known = sizes.get(schema);
    if (known === 'open') throw new Refusal('the output schema is recursive: a $ref leads back to its own schema');
    if (known !== undefined) return known;
    sizes.set(schema, 'open');
    refuseValues(schema, path);
    refuseKeywords(schema, schema === root);
    let size = 1;
    for (const key of ONE) if (isSchema(schema[key])) size += sizeOf(schema[key], [...path, key]);
    for (const key of MANY)
      if (Array.isArray(schema[key]))
        for (const [index, one] of schema[key].entries()) size += sizeOf(one, [...path, key, String(index)]);
    for (const key of NAMED)
      if (isObject(schema[key]))
        for (const [name, one] of Object.entries(schema[key]))
          if (isSchema(one)) size += sizeOf(one, [...path, key, name]);
    if (schema.$ref !== undefined) size += sizeOf(targetOf(root, schema.$ref), [...path, '$ref']);
    sizes.set(schema, size);
    return size;
  };
  return sizeOf(root, []);
}

function refuseKeywords(schema: JsonObject, isRoot: boolean): void {
  const refused =
    REFUSED.find((key) => schema[key] !== undefined) ?? (isRoot || schema.$id === undefined ? null : '$id');
  if (refused) throw new Refusal(`the output schema uses ${refused}: write a $ref to "#/$defs/<name>"`);
  const named = isObject(schema.patternProperties) ? Object.keys(schema.patternProperties) : [];
  for (const pattern of typeof schema.pattern === 'string' ? [schema.pattern, ...named] : named) {
    if (pattern.length > BOUNDS.patternMaxChars)
      throw new Refusal(`a pattern of the output schema has more than ${BOUNDS.patternMaxChars} characters`);
    const problem = regexProblem(pattern);
    if (problem !== null)
      throw new Refusal(`the output schema has an ${problem}; patterns are RE2, without lookaround`);
  }
}

/** The schema at a `$ref`: a JSON Pointer (RFC 6901) into the same document. */
function targetOf(root: JsonObject, ref: Json): Json {
  const unknown = new Refusal(`the output schema has the $ref ${JSON.stringify(ref)}, and no schema there`);
  if (typeof ref !== 'string' || (ref !== '#' && !ref.startsWith('#/'))) throw unknown;
  let target: Json = root;
  for (const step of ref.split('/').slice(1)) {
    const key = unescapePointerKey(decoded(step));
    if (typeof target !== 'object' || target === null || !Object.hasOwn(target, key)) throw unknown;
    target = (target as JsonObject)[key] as Json;
  }
  if (!isSchema(target)) throw unknown;
  return target;
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isSchema(value: Json | undefined): boolean {
  return isObject(value) || typeof value === 'boolean';
}
