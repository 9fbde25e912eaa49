/**
 * Validates arguments against a tool's JSON Schema: in the session, before hooks, gates and people see the call, and
 * again in the process that runs it. A separate entry point, because it contains a validator.
 */
import { Ajv, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { canonicalJson } from '../wire/canonical-json.ts';
import type { Json, JsonObject } from '../wire/json.ts';
import type { ToolDefinition } from './calls.ts';

const options = { strict: false, validateFormats: false, allErrors: false, logger: false } as const;
// Created on demand for each draft: a validator compiles its own meta-schema.
const drafts: { ajv?: Ajv; ajv2020?: Ajv2020 } = {};

// Compiled schemas, or why they cannot be compiled, by their canonical JSON: configured tools repeat from session to
// session. The cache is cleared when it is full.
const compiled = new Map<string, ValidateFunction | string>();
const COMPILED_MAX = 1_024;
const bySchema = new WeakMap<JsonObject, ValidateFunction | string>();

/**
 * The problem of a call's arguments as a sentence for the model, or null. A schema that cannot be compiled is one too.
 */
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

/** Why a tool's schema cannot be compiled, as a sentence, or null. */
export function inputSchemaProblem(tool: Pick<ToolDefinition, 'input_schema'>): string | null {
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
