/**
 * Declarations of tools in code. One shape serves every place with tools: a host's own process, the bus, a persona
 * module and the test kit. Names follow the AI SDK: `inputSchema`, `execute`, `needsApproval`, `toolCallId`,
 * `abortSignal`.
 */

import { CoxswainError } from '../catalogues/error-codes.ts';
import { ToolResult } from '../journal/inputs.ts';
import { type CamelCased, pathFromWire, toWire } from '../wire/casing.ts';
import type { Json, JsonObject } from '../wire/json.ts';
import { pathText, problemSentences, readStrictly } from '../wire/schema-problems.ts';
import { unwritableProblem } from '../wire/unwritable-json.ts';
import { DEFAULT_TRAITS, ToolDefinition, type ToolTraits } from './calls.ts';
import type { ToolApprovalContext, ToolCallContext } from './tool-call-context.ts';

/** The return value of a `longRunning` tool's `execute` if the outcome is sent later, by `session.endCall()`. */
export const LATER: unique symbol = Symbol.for('coxswain.outcome-comes-later') as never;

/**
 * The return value of a tool's `execute`: a text, a whole result (`{ content, isError, detail }`), or {@link LATER}.
 * Any other value becomes its JSON text, and undefined an empty text. An object with the member `content` is always
 * read as a whole result. A result without `isError` is a success. A value without JSON, such as a Map, is a problem.
 */
export type ToolAnswer =
  | string
  | (Omit<CamelCased<ToolResult>, 'isError'> & { readonly isError?: boolean | undefined })
  | typeof LATER
  | object
  | number
  | boolean
  | null
  | undefined
  // biome-ignore lint/suspicious/noConfusingVoidType: a function without a return statement is of this type
  | void;

/** A result with wire names; or a sentence with its problem. */
export type WireToolResult =
  | { readonly ok: true; readonly result: ToolResult }
  | { readonly ok: false; readonly problem: string };

/**
 * Converts the return value of a tool's `execute` to a result with wire names. The function may be JavaScript, or
 * return another type than declared.
 * @param returned the return value ({@link ToolAnswer}), except {@link LATER}.
 */
export function toolAnswerToWire(returned: unknown): WireToolResult {
  if (typeof returned === 'object' && returned !== null && 'content' in returned) return wholeResult(returned);
  if (returned === undefined || typeof returned === 'string') return textResult(returned ?? '');
  const written = jsonText(returned);
  return written.ok ? textResult(written.text) : written;
}

function textResult(text: string): WireToolResult {
  return { ok: true, result: { content: [{ type: 'text', text }], is_error: false } };
}

function jsonText(value: unknown): { readonly ok: true; readonly text: string } | (WireToolResult & { ok: false }) {
  try {
    const text: string | undefined = JSON.stringify(value, withoutOpaque);
    if (text !== undefined) return { ok: true, text };
    return { ok: false, problem: `a ${typeof value} has no JSON` };
  } catch (error) {
    return { ok: false, problem: `it cannot be written as JSON: ${String((error as Error)?.message ?? error)}` };
  }
}

/** Kinds of objects that `JSON.stringify` writes by their content, even if they have no enumerable members. */
const WRITTEN = /^(Object|Array|Number|String|Boolean)$/;

/**
 * A replacer for `JSON.stringify` that rejects objects which it would write without their content.
 * @throws TypeError
 */
function withoutOpaque(_key: string, value: unknown): unknown {
  if (value instanceof Map) throw new TypeError('a Map has no JSON; Object.fromEntries() makes an object of it');
  if (value instanceof Set) throw new TypeError('a Set has no JSON; Array.from() makes an array of it');
  if (value instanceof Error) throw new TypeError('an Error has no JSON; throw it');
  if (value instanceof Promise) throw new TypeError('a Promise has no JSON; await it');
  const kind = Object.prototype.toString.call(value).slice('[object '.length, -1);
  if (typeof value === 'object' && value !== null && !WRITTEN.test(kind) && Object.keys(value).length === 0)
    throw new TypeError(`the kind ${kind} has no JSON`);
  return value;
}

function wholeResult(returned: object): WireToolResult {
  const form = toWire(ToolResult, returned as never);
  if (!form.ok) return { ok: false, problem: `${pathText(form.path)} ${form.words}` };
  const { is_error = false, ...others } = form.value;
  const read = readStrictly(ToolResult, { ...others, is_error });
  if (read.ok) return { ok: true, result: read.data };
  // The author of the tool uses TypeScript names.
  const problems = read.problems.map((one) => ({ ...one, path: [pathFromWire(ToolResult, pathText(one.path))] }));
  return { ok: false, problem: problemSentences(problems).join('; ') };
}

/** A schema of Zod, or of another library that implements Standard Schema and gives the JSON Schema of the input. */
export interface InputSchema<Input = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly validate: (value: unknown) => Checked<Input> | Promise<Checked<Input>>;
    readonly types?: { readonly output: Input } | undefined;
    readonly jsonSchema?: { readonly input: (options: { readonly target: string }) => Record<string, unknown> };
  };
}

type Checked<Input> =
  | { readonly value: Input; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] };

/** The type of a tool's input: that of its Standard Schema (such as Zod); any JSON object for a JSON Schema. */
export type InputOf<Schema> = Schema extends InputSchema<infer Input> ? Input : JsonObject;

// Methods, so that a tool with a typed input is assignable to a list of tools.
interface Functions<Schema> {
  execute(input: InputOf<Schema>, context: ToolCallContext): Promise<ToolAnswer> | ToolAnswer;
  needsApproval(input: InputOf<Schema>, context: ToolApprovalContext): Promise<boolean> | boolean;
}

/** A tool. Absent flags are false. */
export interface Tool<Schema = InputSchema | JsonObject> {
  /** 1 to 128 characters of A-Z a-z 0-9 _ -. On the bus: without `__`, and not the name of a built-in tool. */
  readonly name: string;
  /** For the model, at most 16,384 characters. */
  readonly description: string;
  /** The schema of the input: Standard Schema such as Zod, or JSON Schema. `execute` never gets an invalid input. */
  readonly inputSchema: Schema;
  /**
   * Runs one call. {@link ToolAnswer} lists what it may return. An exception becomes an error result with the code
   * `tool_failed`. When `context.abortSignal` aborts, the function should stop; the session waits for it for a grace
   * period only.
   */
  readonly execute: Functions<Schema>['execute'];
  /**
   * Whether a person must approve the call: always, or if the function returns true. It only adds a question:
   * permission rules may still deny the call, and no rule waives the question. A function that throws, or takes longer
   * than 5 seconds, counts as true. It may run several times for one call.
   */
  readonly needsApproval?: boolean | Functions<Schema>['needsApproval'] | undefined;
  /** The call may run again if its outcome is unknown: the same idempotency key has the same effect. */
  readonly idempotent?: boolean | undefined;
  /** The outcome may arrive after the process has ended, as a durable command. */
  readonly longRunning?: boolean | undefined;
  /** A batch with such a call runs one call after another. */
  readonly sequential?: boolean | undefined;
  /** A batch ends the run if each of its calls that ran is of such a tool and ended without an error. */
  readonly terminates?: boolean | undefined;
  /**
   * On the bus: the id of the only session that has the tool. The start of the session names the tool in `stand_ins`.
   */
  readonly forSession?: string | undefined;
  /**
   * Stops a call whose function returned {@link LATER}. Only for tools in the process of a session host.
   * @param idempotencyKey the key from the function's context.
   */
  stop?(idempotencyKey: string, reason: string): void | Promise<void>;
}

/** A tool definition is invalid. */
export class ToolDefinitionError extends CoxswainError {
  constructor(message: string) {
    super('tool_definition_invalid', message);
  }
}

/** A validated definition. */
export interface DeclaredTool {
  readonly definition: Omit<ToolDefinition, 'source' | 'max_output'>;
  readonly forSession: string | undefined;
  /**
   * Validates an input by its Standard Schema, such as Zod. Null for a JSON Schema: validate-arguments.ts checks those.
   * @returns the input with the schema's defaults and transformations, or a sentence for the model.
   */
  readonly validate:
    | ((input: JsonObject) => Promise<{ readonly input: unknown } | { readonly problem: string }>)
    | null;
  /**
   * Whether a person must approve this call. Never rejects: an exception counts as true. A function is not asked about
   * an input that `validate` refuses: such a call needs no approval.
   */
  needsApproval(input: JsonObject, context: ToolApprovalContext): Promise<boolean>;
  /** @param input as `validate` returned it. */
  execute(input: unknown, context: ToolCallContext): unknown;
  readonly stop: Tool['stop'];
}

/** Names of members in other libraries and in earlier versions, each with the right name. */
const MISNAMED: Readonly<Record<string, string>> = {
  run: 'execute',
  schema: 'inputSchema',
  input_schema: 'inputSchema',
  parameters: 'inputSchema',
  long_running: 'longRunning',
  needs_approval: 'needsApproval',
  traits: 'idempotent, longRunning, sequential, terminates',
};

const NOT_A_TOOL = 'not a tool: expected defineTool({ name, description, inputSchema, execute })';

/**
 * Validates a definition, which may be JavaScript. Whether a JSON Schema is valid is not checked: `inputSchemaProblem`
 * (validate-arguments.ts).
 * @throws ToolDefinitionError naming the tool and what is wrong.
 */
export function readTool(given: unknown): DeclaredTool {
  const tool = given as Tool;
  if (typeof tool !== 'object' || tool === null) throw new ToolDefinitionError(NOT_A_TOOL);
  const { name, description, inputSchema, execute, needsApproval, forSession, stop, ...flags } = tool;
  const subject = `the tool ${JSON.stringify(name)?.slice(0, 140)}`;
  for (const [member, right] of Object.entries(MISNAMED))
    if (Object.hasOwn(tool, member)) throw new ToolDefinitionError(`${subject}: ${member} is named ${right}`);
  if (name === undefined && execute === undefined) {
    const found = Object.keys(tool).join(', ').slice(0, 140) || 'no member';
    throw new ToolDefinitionError(`${NOT_A_TOOL}; found ${found}`);
  }
  if (typeof execute !== 'function')
    throw new ToolDefinitionError(`${subject} is not a tool: its member execute must be a function`);
  if (!['undefined', 'boolean', 'function'].includes(typeof needsApproval))
    throw new ToolDefinitionError(`${subject}: needsApproval must be a boolean or a function`);
  const asks = needsApproval === true ? 'always' : typeof needsApproval === 'function' ? 'by_call' : undefined;
  const read = readStrictly(ToolDefinition, {
    name,
    description,
    input_schema: jsonSchemaOf(inputSchema, subject),
    source: 'code',
    traits: traitsOf(flags),
    ...(asks === undefined ? {} : { needs_approval: asks }),
  });
  if (!read.ok) throw new ToolDefinitionError(`${subject} is not valid: ${problemSentences(read.problems)[0]}`);
  const unwritable = unwritableProblem({ description, inputSchema: read.data.input_schema });
  if (unwritable) throw new ToolDefinitionError(`${subject} is not valid: ${unwritable.message}`);
  const { type } = read.data.input_schema;
  if (type !== undefined && ![type].flat().includes('object'))
    throw new ToolDefinitionError(
      `${subject}: inputSchema must describe an object, not ${JSON.stringify(type)}: z.object({ … }), or JSON Schema of the type "object"`,
    );
  const { source: _, ...definition } = read.data;
  const validate = isInputSchema(inputSchema) ? (input: JsonObject) => validated(inputSchema, input) : null;
  return {
    definition,
    forSession,
    validate,
    async needsApproval(input, context) {
      if (typeof needsApproval !== 'function') return needsApproval === true;
      try {
        const checked = validate ? await validate(input) : { input };
        // A call with an invalid input ends with an error and runs nothing, so it needs no approval.
        if ('problem' in checked) return false;
        return (await needsApproval.call(tool, checked.input, context)) !== false;
      } catch {
        return true;
      }
    },
    execute: (input, context) => execute.call(tool, input, context),
    stop: stop?.bind(tool),
  };
}

function traitsOf({ longRunning, ...flags }: Partial<Record<string, boolean | undefined>>): ToolTraits {
  const given = Object.entries({ ...flags, long_running: longRunning }).filter(([, value]) => value !== undefined);
  return { ...DEFAULT_TRAITS, ...Object.fromEntries(given) };
}

async function validated(
  schema: InputSchema,
  input: JsonObject,
): Promise<{ readonly input: unknown } | { readonly problem: string }> {
  const checked = await schema['~standard'].validate(input);
  if (checked.issues === undefined) return { input: checked.value };
  const [first] = checked.issues;
  const where = first?.path?.length ? `${first.path.map(String).join('.')} ` : '';
  return { problem: `The arguments do not fit the tool's schema: ${where}${first?.message ?? 'they are not valid'}.` };
}

function isInputSchema(schema: InputSchema | JsonObject): schema is InputSchema {
  return typeof schema['~standard'] === 'object' && schema['~standard'] !== null;
}

function jsonSchemaOf(schema: InputSchema | JsonObject, subject: string): Json {
  if (typeof schema !== 'object' || schema === null) throw new ToolDefinitionError(`${subject} has no inputSchema`);
  if (!isInputSchema(schema)) return schema;
  const { jsonSchema } = schema['~standard'];
  if (!jsonSchema)
    throw new ToolDefinitionError(`${subject}: its inputSchema does not return JSON Schema; Zod 4.2 or later does`);
  try {
    return jsonSchema.input({ target: 'draft-2020-12' }) as Json;
  } catch (error) {
    throw new ToolDefinitionError(`${subject}: no JSON Schema of its inputSchema: ${(error as Error).message}`);
  }
}
