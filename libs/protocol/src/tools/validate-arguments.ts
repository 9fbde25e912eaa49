/**
 * Arguments against a tool's JSON Schema: by the session, before any hook, gate or person sees the call, and again by
 * the process that runs it. A door of its own, as it brings a validator with it.
 */
import { Ajv, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { canonicalJson } from '../wire/canonical-json.ts';
import type { Json, JsonObject } from '../wire/json.ts';
import type { ToolDefinition } from './calls.ts';

const options = { strict: false, validateFormats: false, allErrors: false, logger: false } as const;
// Made for the first schema of each draft: a validator compiles its own meta-schema.
const drafts: { ajv?: Ajv; ajv2020?: Ajv2020 } = {};

// Schemas come from configured tools and repeat from session to session; a compiled one is kept while it is among the
// newest that were used.
const compiled = new Map<string, ValidateFunction | string>();
const COMPILED_MAX = 1_024;
const bySchema = new WeakMap<JsonObject, ValidateFunction | string>();

/** What is wrong with a call's arguments, in a sentence, or null. */
export function argumentsProblem(tool: Pick<ToolDefinition, 'input_schema'>, args: Json): string | null {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return 'The arguments are not a JSON object.';
  const validate = validatorOf(tool.input_schema);
  if (typeof validate === 'string') return unusable(validate);
  if (validate(args)) return null;
  const error = validate.errors?.[0];
  const where = error?.instancePath ? `${error.instancePath.slice(1).replaceAll('/', '.')} ` : '';
  const what =
    error?.keyword === 'additionalProperties'
      ? `has an unknown property ${JSON.stringify(error.params.additionalProperty)}`
      : error?.message;
  return `The arguments do not fit the tool's schema: ${where}${what ?? 'they are not valid'}.`;
}

/** Why a tool's schema cannot validate anything, in a sentence, or null. */
export function schemaProblem(tool: Pick<ToolDefinition, 'input_schema'>): string | null {
  const validate = validatorOf(tool.input_schema);
  return typeof validate === 'string' ? unusable(validate) : null;
}

const unusable = (why: string) => `The tool's schema cannot be used: ${why}.`;

function validatorOf(schema: JsonObject): ValidateFunction | string {
  const known = bySchema.get(schema);
  if (known) return known;
  const key = canonicalJson(schema);
  let validate = compiled.get(key);
  if (!validate) {
    validate = compile(schema);
    if (compiled.size >= COMPILED_MAX) {
      compiled.clear();
      drafts.ajv?.removeSchema();
      drafts.ajv2020?.removeSchema();
    }
    compiled.set(key, validate);
  }
  bySchema.set(schema, validate);
  return validate;
}

function compile(schema: JsonObject): ValidateFunction | string {
  const { $schema, $id: _, ...rest } = schema;
  const is2020 = typeof $schema === 'string' && $schema.includes('2020-12');
  try {
    return draftOf(is2020).compile(rest);
  } catch (error) {
    return (error as Error).message;
  }
}

function draftOf(is2020: boolean): Ajv {
  if (is2020) {
    drafts.ajv2020 ??= new Ajv2020(options);
    return drafts.ajv2020;
  }
  drafts.ajv ??= new Ajv(options);
  return drafts.ajv;
}
