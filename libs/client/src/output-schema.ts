/**
 * Structured output in programs: the schema of a final answer, as Zod or JSON Schema, and the type of its value.
 */
import { CoxswainError, type Json, type JsonObject } from '@coxswain/protocol';

/** A schema of Zod 4, or of another library that implements Standard Schema and Standard JSON Schema. */
export interface ValueSchema<Value = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly types?: { readonly output: Value } | undefined;
    readonly jsonSchema?: { readonly output: (options: { readonly target: string }) => Record<string, unknown> };
  };
}

/** The schema of a final answer: Zod, or JSON Schema (draft 7 or 2020-12). */
export type OutputSource = ValueSchema | JsonObject;

/** The type of the value of a final answer: typed by Zod, any JSON by JSON Schema. */
export type OutputOf<Schema> = Schema extends ValueSchema<infer Value> ? Value : Json;

declare const OUTPUT: unique symbol;

/** A persona with the type of its output. The member exists in types only. */
export interface TypedPersona<Value> {
  readonly [OUTPUT]?: Value;
}

/** What `startSession()` knows of the type of the output: by the schema of the start, else by the persona. */
export type StartedOutput<Schema, PersonaValue> = [Schema] extends [never]
  ? unknown extends PersonaValue
    ? Json
    : PersonaValue
  : OutputOf<Schema>;

/** A schema that has no JSON Schema. */
export class OutputSchemaError extends CoxswainError {
  constructor(message: string) {
    super('output_schema_invalid', message);
  }
}

/**
 * The JSON Schema of a schema; JSON Schema is returned as it is. Where Zod states a format, its pattern is left out: it is not
 * RE2.
 * @param place what has the schema, for the message of an error: `startSession()`.
 * @throws OutputSchemaError where the schema has no JSON Schema, as one with a transform.
 */
export function outputJsonSchema(schema: OutputSource, place: string): JsonObject {
  if (!isValueSchema(schema)) return schema;
  const { jsonSchema } = schema['~standard'];
  if (!jsonSchema)
    throw new OutputSchemaError(`${place}: the output schema has no JSON Schema; Zod 4.2 and later has one`);
  try {
    return withoutFormatPatterns(jsonSchema.output({ target: 'draft-2020-12' }) as Json) as JsonObject;
  } catch (error) {
    throw new OutputSchemaError(`${place}: the output schema has no JSON Schema: ${(error as Error).message}`);
  }
}

function isValueSchema(schema: OutputSource): schema is ValueSchema {
  return typeof schema['~standard'] === 'object' && schema['~standard'] !== null;
}

function withoutFormatPatterns(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(withoutFormatPatterns);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { pattern, ...rest } = schema;
  const kept = typeof schema.format === 'string' && typeof pattern === 'string' ? rest : schema;
  return Object.fromEntries(
    Object.entries(kept).map(([key, member]) => [key, VALUES.has(key) ? member : withoutFormatPatterns(member)]),
  );
}

/** Keywords whose members are values, not schemas. */
const VALUES: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'examples']);
