/** Declares a tool that is served on the bus, its arguments typed by their schema. Loads nothing at run time. */
import {
  CoxswainError,
  DEFAULT_TRAITS,
  type Json,
  type JsonObject,
  problemSentences,
  readStrictly,
  ToolAnnouncement,
  type ToolCallContext,
  type ToolResult,
  type ToolTraits,
} from '@coxswain/protocol';

/** What the function of a `long_running` tool returns where somebody else will bring the outcome, by `session.endCall`. */
export const LATER: unique symbol = Symbol.for('coxswain.outcome-comes-later') as never;

export type { ToolCallContext };

/** What a tool's function returns: a text, a whole result, or that the outcome comes later. */
export type ToolAnswer = string | ToolResult | typeof LATER;

/** A schema of Zod, or of another library that follows Standard Schema and gives JSON Schema of itself. */
export interface ArgumentSchema<Args = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly validate: (value: unknown) => Checked<Args> | Promise<Checked<Args>>;
    readonly types?: { readonly output: Args } | undefined;
    readonly jsonSchema?: { readonly input: (options: { readonly target: string }) => Record<string, unknown> };
  };
}

type Checked<Args> =
  | { readonly value: Args; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] };

/** What a function's arguments are by their schema: typed by Zod's, any JSON object by JSON Schema. */
export type ArgumentsOf<Schema> = Schema extends ArgumentSchema<infer Args> ? Args : JsonObject;

/** A tool that is served on the bus. What it does not say of itself is false; see {@link ToolTraits}. */
export interface ServedToolDefinition<Schema = ArgumentSchema | JsonObject> extends Partial<ToolTraits> {
  /** 1 to 128 characters of A-Z a-z 0-9 _ -, without `__`, and not the name of a built-in tool. */
  readonly name: string;
  /** For the model. */
  readonly description: string;
  /** The one session that has it, where its start names it among its `stand_ins`; others neither see nor call it. */
  readonly forSession?: string | undefined;
  /** Of the arguments: a Zod object, or JSON Schema. Calls that do not fit it never reach the function. */
  readonly schema: Schema;
  /**
   * Runs one call. A string is the text of the result; what it throws becomes an error result with the code
   * `tool_failed`. A `long_running` tool may take as long as its process lives: its outcome is sent when it is there.
   */
  run(args: ArgumentsOf<Schema>, context: ToolCallContext): Promise<ToolAnswer> | ToolAnswer;
}

/**
 * Declares a tool: `export default defineTool({ name, description, schema: z.object({ … }), run(args) { … } })`.
 * @returns what it was given: whoever serves it checks it.
 */
export function defineTool<const Schema extends ArgumentSchema | JsonObject>(
  tool: ServedToolDefinition<Schema>,
): ServedToolDefinition<Schema> {
  return tool;
}

/** A definition that cannot be served. */
export class ToolDefinitionError extends CoxswainError {
  constructor(message: string) {
    super('tool_definition_invalid', message);
  }
}

/** A definition that was checked, as it is announced and run. */
export interface CheckedTool {
  readonly announced: Omit<ToolAnnouncement, 'v' | 'since'>;
  /** Checks the arguments again: they have come over the bus. A sentence says what is wrong. */
  check(args: JsonObject): Promise<{ readonly args: unknown } | { readonly problem: string }>;
  run(args: unknown, context: ToolCallContext): Promise<unknown>;
}

/** Checks a definition, which may come from JavaScript. @throws ToolDefinitionError */
export async function checkTool(given: unknown): Promise<CheckedTool> {
  const tool = given as ServedToolDefinition;
  if (typeof tool !== 'object' || tool === null || typeof tool.run !== 'function')
    throw new ToolDefinitionError('what is to be served is no tool: defineTool({ name, description, schema, run })');
  const { name, description, forSession, schema, run: _, ...traits } = tool;
  const said = `the tool ${JSON.stringify(name)?.slice(0, 140)}`;
  const input_schema = jsonSchemaOf(schema, said);
  // Read as it will be announced, with a time that fits in place of the one that is known then.
  const read = readStrictly(ToolAnnouncement, {
    v: 1,
    since: '2000-01-01T00:00:00.000Z',
    name,
    description,
    input_schema,
    traits: { ...DEFAULT_TRAITS, ...traits },
    ...(forSession === undefined ? {} : { for_session: forSession }),
  });
  if (!read.ok) throw new ToolDefinitionError(`${said} is not valid: ${problemSentences(read.problems)[0]}`);
  const { v: _v, since: _since, ...announced } = read.data;
  // Loaded only where tools are served: it brings a validator with it.
  const { argumentsProblem } = await import('@coxswain/protocol/validate-arguments');
  const unusable = argumentsProblem(announced, {})?.match(/^The tool's schema cannot be used.*/);
  if (unusable) throw new ToolDefinitionError(`${said}: ${unusable[0]}`);
  return {
    announced,
    async check(args) {
      const problem = argumentsProblem(announced, args);
      if (problem !== null) return { problem };
      if (!isArgumentSchema(schema)) return { args };
      const checked = await schema['~standard'].validate(args);
      if (checked.issues === undefined) return { args: checked.value };
      const [first] = checked.issues;
      const where = first?.path?.length ? `${first.path.map(String).join('.')} ` : '';
      return {
        problem: `The arguments do not fit the tool's schema: ${where}${first?.message ?? 'they are not valid'}.`,
      };
    },
    run: async (args, context) => tool.run(args as never, context),
  };
}

function isArgumentSchema(schema: ArgumentSchema | JsonObject): schema is ArgumentSchema {
  return typeof schema['~standard'] === 'object' && schema['~standard'] !== null;
}

function jsonSchemaOf(schema: ArgumentSchema | JsonObject, said: string): Json {
  if (typeof schema !== 'object' || schema === null) throw new ToolDefinitionError(`${said} has no schema`);
  if (!isArgumentSchema(schema)) return schema;
  const { jsonSchema } = schema['~standard'];
  if (!jsonSchema) throw new ToolDefinitionError(`${said}: its schema gives no JSON Schema of itself; Zod 4.2 does`);
  try {
    return jsonSchema.input({ target: 'draft-2020-12' }) as Json;
  } catch (error) {
    throw new ToolDefinitionError(`${said}: no JSON Schema of its arguments: ${(error as Error).message}`);
  }
}
