/** Structured output in programs: the schema of a final answer, as Zod or JSON Schema, and the type of its value. */
import { CoxswainError, type Json, type JsonObject } from '@coxswain/protocol';
import type { RunResult } from './run-result.ts';

/** A schema of Zod 4, or of another library that implements Standard Schema and Standard JSON Schema. */
export interface ValueSchema<Value = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly types?: { readonly output: Value } | undefined;
    readonly validate?: (value: unknown) => CheckedValue | Promise<CheckedValue>;
    readonly jsonSchema?: { readonly output: (options: { readonly target: string }) => Record<string, unknown> };
  };
}

type CheckedValue =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] };

/** The schema of a final answer: Zod, or JSON Schema (draft 7 or 2020-12). */
export type OutputSource = ValueSchema | JsonObject;

/** The type of a final answer: inferred from Zod, any JSON for JSON Schema. */
export type OutputOf<Schema> = Schema extends ValueSchema<infer Value> ? Value : Json;

declare const OUTPUT: unique symbol;

/** A persona with the type of its output. The member exists in types only. */
export interface TypedPersona<Value> {
  readonly [OUTPUT]?: Value;
}

/** The output type of `startSession()`: from the schema of the start, otherwise from the persona. */
export type StartedOutput<Schema, PersonaValue> = [Schema] extends [never]
  ? unknown extends PersonaValue
    ? Json
    : PersonaValue
  : OutputOf<Schema>;

/** An output schema cannot be converted to JSON Schema. */
export class OutputSchemaError extends CoxswainError {
  constructor(message: string) {
    super('output_schema_invalid', message);
  }
}

/** The maximum number of problems in a message. */
const PROBLEMS_MAX = 5;

/**
 * Validates the output of a run by the schema in this program. A Zod schema may check more than its JSON Schema, such
 * as refinements, and it adds defaults.
 * @param schema JSON Schema is not checked again: the session host has validated the output by it.
 * @returns the result with the value that the schema returns.
 * @throws CoxswainError `output_invalid` naming the invalid paths.
 */
export async function checkedResult(schema: OutputSource | undefined, result: RunResult): Promise<RunResult> {
  if (schema === undefined || result.output === undefined || !isValueSchema(schema)) return result;
  const checked = await schema['~standard'].validate?.(result.output);
  if (checked === undefined) return result;
  if (checked.issues === undefined) return { ...result, output: checked.value as Json };
  const problems = checked.issues
    .slice(0, PROBLEMS_MAX)
    .map(({ path, message }) => `${path?.length ? path.map(segmentOf).join('.') : 'the value'}: ${message}`);
  throw new CoxswainError(
    'output_invalid',
    `the output does not pass the checks of its schema: ${problems.join('; ')}`,
  );
}

/** A path segment is a key, or an object with a `key`. */
function segmentOf(segment: unknown): string {
  return String(typeof segment === 'object' && segment !== null && 'key' in segment ? segment.key : segment);
}

/**
 * Converts a schema to JSON Schema; JSON Schema is returned unchanged. For a string format, the pattern of Zod is
 * omitted: it is not RE2. A property with a default is not required.
 * @param place The place of the schema for error messages, such as `startSession()`.
 * @throws OutputSchemaError if the schema has no JSON Schema, such as a schema with a transform.
 */
export function outputJsonSchema(schema: OutputSource, place: string): JsonObject {
  if (!isValueSchema(schema)) return schema;
  const { jsonSchema } = schema['~standard'];
  if (!jsonSchema)
    throw new OutputSchemaError(`${place}: the output schema has no JSON Schema; Zod 4.2 and later has one`);
  try {
    return adapted(jsonSchema.output({ target: 'draft-2020-12' }) as Json) as JsonObject;
  } catch (error) {
    throw new OutputSchemaError(`${place}: the output schema has no JSON Schema: ${(error as Error).message}`);
  }
}

/** Whether a schema contains code, unlike JSON Schema. */
export function isValueSchema(schema: OutputSource): schema is ValueSchema {
  return typeof schema['~standard'] === 'object' && schema['~standard'] !== null;
}

function adapted(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(adapted);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { pattern, required, ...rest } = schema;
  const kept = {
    ...rest,
    ...(pattern === undefined || (typeof schema.format === 'string' && typeof pattern === 'string') ? {} : { pattern }),
    ...(required === undefined ? {} : { required: requiredOf(required, schema.properties) }),
  };
  return Object.fromEntries(
    Object.entries(kept).map(([key, member]) => [key, VALUES.has(key) ? member : adapted(member)]),
  );
}

/** Omits properties with a default: the validation in the program adds them. */
function requiredOf(required: Json, properties: Json | undefined): Json {
  if (!Array.isArray(required) || typeof properties !== 'object' || properties === null) return required;
  const hasDefault = (name: Json) => {
    const property = (properties as JsonObject)[String(name)];
    return typeof property === 'object' && property !== null && 'default' in property;
  };
  return required.filter((name) => !hasDefault(name));
}

/** Keywords with values, not schemas. */
const VALUES: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'examples']);
