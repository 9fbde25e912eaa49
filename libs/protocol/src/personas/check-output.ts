/**
 * Validates a complete answer without calls against the output schema of its session. A host validates when the answer
 * arrives and records the result, so replay needs no schema. This is a separate entry point, because it contains a validator.
 */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { BOUNDS } from '../wire/bounds.ts';
import { canonicalJson } from '../wire/canonical-json.ts';
import { type Json, type JsonObject, pointerKeys } from '../wire/json.ts';
import { regexBudget, regexMatches } from '../wire/regular-expressions.ts';
import { pathText } from '../wire/schema-problems.ts';
import { parseStrictJson } from '../wire/strict-json.ts';
import { cutText } from '../wire/unicode-text.ts';
import { unwritableMember } from '../wire/unwritable-json.ts';
import { expandedSize, type OutputCheck, outputSchemaProblem } from './output-schema.ts';

/** The budget of the validation that runs. */
let budget = regexBudget();

/** Patterns run on RE2, so no schema can make validation take exponential time. */
const linearTime = Object.assign(
  (pattern: string) => ({ test: (text: string) => regexMatches(pattern, text, budget) === true }),
  // Used by standalone generated code only.
  { code: 'regexMatches' },
);
const options = {
  strict: false,
  validateFormats: false,
  logger: false,
  addUsedSchema: false,
  code: { regExp: linearTime },
} as const;

interface Compiled {
  readonly size: number;
  /** Finds the first problem only; the other one finds all. */
  readonly first: ValidateFunction;
  readonly all: ValidateFunction;
}

// Cache of compiled schemas of the host's sessions. It is cleared when it is full.
const compiled = new Map<string, Compiled | string>();
const COMPILED_MAX = 64;
const bySchema = new WeakMap<JsonObject, Compiled | string>();
/**
 * Beyond this product of the schema's size and the number of values in the answer, validation stops at the first problem.
 */
const ALL_PROBLEMS_MAX = 100_000;

/** Why a schema is invalid, exceeds its bounds or cannot be compiled; or null. */
export function unusableOutputSchema(schema: JsonObject): string | null {
  const known = compiledOf(schema);
  return typeof known === 'string' ? known : null;
}

/**
 * Reads the JSON of an answer and validates it. The JSON may be in one code fence, with text around the fence.
 * @param schema a schema that {@link unusableOutputSchema} accepts.
 */
export function checkOutput(schema: JsonObject, text: string): OutputCheck {
  const known = compiledOf(schema);
  if (typeof known === 'string') return refused(`The output schema cannot be used: ${known}.`);
  const json = jsonIn(text);
  if (json === '') return refused('The answer is empty.');
  const bytes = Buffer.byteLength(json, 'utf8');
  if (bytes > BOUNDS.outputMaxBytes)
    return refused(`The JSON has ${bytes} bytes; the limit is ${BOUNDS.outputMaxBytes}.`);
  const parsed = parseStrictJson(json);
  if (!parsed.ok) return refused(`The answer is not valid JSON: ${parsed.why}`);
  const value = parsed.value as Json;
  const values = countValues(value);
  if (values === null)
    return refused(
      `The JSON has more than ${BOUNDS.outputValuesMax} values, or is nested deeper than ${BOUNDS.jsonDepthMax}.`,
    );
  const unwritable = unwritableMember(value);
  if (unwritable !== null)
    return refused(
      `${unwritable.path.join('.').toWellFormed()}: ${unwritable.kind === 'number' ? 'the number is too large' : 'ill-formed Unicode: a lone surrogate'}`,
    );
  const validate = known.size * values <= ALL_PROBLEMS_MAX ? known.all : known.first;
  budget = regexBudget();
  const isValid = validate(value);
  if (budget.isExceeded) return refused('The texts are too long for the patterns of the output schema.');
  if (isValid) return { value };
  return { problems: problemsOf(validate.errors ?? []) };
}

function refused(problem: string): OutputCheck {
  return { problems: [problem] };
}

/** The text of the JSON: the only fenced block. Without exactly one, or after a first `{` or `[`, the whole answer. */
function jsonIn(text: string): string {
  const whole = text.trim();
  const parts = whole.split('```');
  if (parts.length !== 3 || whole.startsWith('{') || whole.startsWith('[')) return whole;
  // The word after the fence names the language.
  return (parts[1] ?? '').replace(/^[A-Za-z0-9]*\s/, '').trim();
}

/** The number of values, or null beyond the bounds. Not recursive: deep nesting must not overflow the stack. */
function countValues(root: Json): number | null {
  let count = 0;
  const open: { readonly value: Json; readonly depth: number }[] = [{ value: root, depth: 0 }];
  for (let place = open.pop(); place; place = open.pop()) {
    const { value, depth } = place;
    count += 1;
    if (count > BOUNDS.outputValuesMax) return null;
    if (typeof value !== 'object' || value === null) continue;
    // As `Json` counts: a record with a deeper value could not be read.
    if (depth >= BOUNDS.jsonDepthMax) return null;
    for (const member of Object.values(value)) open.push({ value: member, depth: depth + 1 });
  }
  return count;
}

function problemsOf(errors: readonly ErrorObject[]): string[] {
  // Leaves out the error of `if` itself: its branch reports the problem.
  const telling = errors.filter(({ keyword }) => keyword !== 'if');
  const sentences = [...new Set((telling.length > 0 ? telling : errors).map(sentenceOf))];
  if (sentences.length === 0) return ['The JSON does not fit the schema.'];
  if (sentences.length <= BOUNDS.outputProblemsMax) return sentences;
  const shown = sentences.slice(0, BOUNDS.outputProblemsMax - 1);
  return [...shown, `${sentences.length - shown.length} more problems`];
}

function sentenceOf({ instancePath, keyword, params, message }: ErrorObject): string {
  const path = pointerKeys(instancePath).map((key) => (/^\d{1,6}$/.test(key) ? Number(key) : key));
  const words =
    keyword === 'additionalProperties' || keyword === 'unevaluatedProperties'
      ? `must not have the property ${JSON.stringify(params.additionalProperty ?? params.unevaluatedProperty)}`
      : keyword === 'enum'
        ? `must be one of ${(params.allowedValues as readonly Json[]).map((one) => JSON.stringify(one)).join(', ')}`
        : keyword === 'const'
          ? `must be ${JSON.stringify(params.allowedValue)}`
          : (message ?? 'does not fit');
  const at = pathText(path);
  return cutText(at === '' ? words : `${at}: ${words}`, BOUNDS.outputProblemMaxChars);
}

function compiledOf(schema: JsonObject): Compiled | string {
  const known = bySchema.get(schema);
  if (known !== undefined) return known;
  const key = canonicalJson(schema);
  let result = compiled.get(key);
  if (result === undefined) {
    result = compile(schema);
    if (compiled.size >= COMPILED_MAX) compiled.clear();
    compiled.set(key, result);
  }
  bySchema.set(schema, result);
  return result;
}

function compile(schema: JsonObject): Compiled | string {
  const problem = outputSchemaProblem(schema);
  if (problem !== null) return problem;
  const { $schema, $id: _, ...rest } = schema;
  const Draft = typeof $schema === 'string' && $schema.includes('2020-12') ? Ajv2020 : Ajv;
  try {
    // A separate instance, so that a dropped schema is garbage-collected.
    const first = new Draft({ ...options, allErrors: false }).compile(rest);
    const all = new Draft({ ...options, allErrors: true }).compile(rest);
    return { size: expandedSize(schema), first, all };
  } catch (error) {
    return (error as Error).message;
  }
}
