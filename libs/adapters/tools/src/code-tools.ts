/** Tools that the embedding program gives as functions. */
import type { ToolOutcome, ToolSource } from '@coxswain/ports';
import {
  DEFAULT_TRAITS,
  type JsonObject,
  problemSentences,
  readStrictly,
  ToolDefinition,
  ToolResult,
  type ToolTraits,
} from '@coxswain/protocol';
import { type CallContext, type FunctionTool, functionToolset } from './function-toolset.ts';
import { failed, textResult } from './tool-outcome.ts';

/** What the function of a `long_running` tool returns: it has taken the call up, its outcome comes as `call_outcome`. */
export const LATER: unique symbol = Symbol('the outcome comes later');

/** What a code tool's function is given besides the arguments. */
export interface CodeToolContext extends CallContext {
  /** Absolute path of the session's root folder. */
  readonly root: string;
}

/** A tool as a function of the embedding program. */
export interface CodeTool {
  /** 1 to 128 characters of A-Z a-z 0-9 _ -. */
  readonly name: string;
  /** For the model. */
  readonly description: string;
  /** JSON Schema of the arguments; calls that do not fit it never reach the function. */
  readonly input_schema: JsonObject;
  /** What is not given is false; see {@link ToolTraits}. */
  readonly traits?: Partial<ToolTraits>;
  /**
   * Runs one call. A string is the text of the result. Whatever it throws becomes an error result with the code
   * `tool_failed`; {@link LATER} leaves the call open until its outcome is sent. When `signal` aborts it should stop soon, and then may throw or return; a session does not wait.
   */
  run(args: JsonObject, context: CodeToolContext): Promise<CodeToolAnswer> | CodeToolAnswer;
  /** Told when a call that was taken up shall stop; `idempotencyKey` is what its function was given. */
  stop?(idempotencyKey: string, reason: string): void | Promise<void>;
}

/** What a code tool's function returns. */
export type CodeToolAnswer = string | ToolResult | typeof LATER;

/**
 * A source of tools made of functions. Throws a TypeError if a definition is not valid or a name occurs twice: that is
 * a mistake in the program, not in the world.
 */
export function createCodeTools(definitions: readonly CodeTool[]): ToolSource {
  const checked = definitions.map((tool) => ({ tool, definition: definitionOf(tool) }));
  const names = new Set<string>();
  for (const { definition } of checked) {
    if (names.has(definition.name)) throw new TypeError(`two code tools are named ${definition.name}`);
    names.add(definition.name);
  }
  return {
    async open(spec) {
      return functionToolset(
        checked.map(
          ({ tool, definition }): FunctionTool => ({
            definition,
            stop: tool.stop?.bind(tool),
            run: async (args, context) => outcomeOf(await tool.run(args, { ...context, root: spec.root })),
          }),
        ),
      );
    },
  };
}

function definitionOf({ name, description, input_schema, traits }: CodeTool): ToolDefinition {
  const read = readStrictly(ToolDefinition, {
    name,
    description,
    input_schema,
    source: 'code',
    traits: { ...DEFAULT_TRAITS, ...traits },
  });
  if (read.ok) return read.data;
  throw new TypeError(`the code tool ${JSON.stringify(name)} is not valid: ${problemSentences(read.problems)[0]}`);
}

function outcomeOf(returned: CodeToolAnswer): ToolOutcome {
  if (returned === LATER) return { status: 'accepted', result: textResult(false, ['']) };
  if (typeof returned === 'string') return { status: 'ok', result: textResult(false, [returned]) };
  // The function may be JavaScript, or lie about its type; what it returns goes into the journal.
  const read = readStrictly(ToolResult, returned);
  if (!read.ok)
    return failed('tool_failed', `the tool returned what is no result: ${problemSentences(read.problems)[0]}`);
  return { status: read.data.is_error ? 'error' : 'ok', result: read.data };
}
