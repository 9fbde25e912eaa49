/** What a built-in tool is. */

import { resolve } from 'node:path';
import type { ToolOutcome } from '@coxswain/ports';
import { DEFAULT_TRAITS, type JsonObject, type ToolCallContext, type ToolTraits } from '@coxswain/protocol';
import type { FunctionTool } from './function-toolset.ts';
import { type ArgumentsOf, inputSchema, type Parameters, readArguments } from './parameters.ts';
import { inTurn } from './replace-file.ts';
import type { RootFolder } from './root-folder.ts';

/** Bounds of one result. */
export interface ResultBounds {
  /** All text of a result, as JSON in UTF-8. */
  readonly textMaxBytes: number;
  /** A file in a result, before base64. */
  readonly fileMaxBytes: number;
}

/** What a built-in tool works with. */
export interface BuiltInContext extends Omit<ToolCallContext, 'root'> {
  readonly root: RootFolder;
  readonly bounds: ResultBounds;
}

/** One built-in tool. `run` may throw; {@link ToolProblem} keeps its code, anything else becomes `tool_failed`. */
export interface BuiltInTool<P extends Parameters> {
  readonly name: string;
  /** For the model. */
  readonly description: string;
  readonly parameters: P;
  readonly traits?: Partial<ToolTraits>;
  /** The argument that names the file it works on: calls on one file run in the order in which they were begun. */
  readonly fileArgument?: keyof P & string;
  run(args: ArgumentsOf<P>, context: BuiltInContext): Promise<ToolOutcome>;
}

/** Binds a built-in tool to a root. */
export function bindBuiltIn<P extends Parameters>(
  tool: BuiltInTool<P>,
  root: RootFolder,
  bounds: ResultBounds,
): FunctionTool {
  return {
    definition: {
      name: tool.name,
      description: tool.description,
      input_schema: inputSchema(tool.parameters),
      source: 'built_in',
      traits: { ...DEFAULT_TRAITS, ...tool.traits },
    },
    run: (args: JsonObject, context) => {
      const work = async () => {
        context.abortSignal.throwIfAborted();
        return tool.run(readArguments(tool.parameters, args), { ...context, root, bounds });
      };
      const file = tool.fileArgument === undefined ? undefined : args[tool.fileArgument];
      // The turn is taken before anything is waited for: calls of a batch are begun in call order, and stay in it.
      return typeof file === 'string' ? inTurn(`as asked: ${resolve(root.path, file)}`, work) : work();
    },
  };
}
