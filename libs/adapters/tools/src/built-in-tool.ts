/** The interface of built-in tools. */

import { resolve } from 'node:path';
import type { ToolOutcome } from '@coxswain/ports';
import { DEFAULT_TRAITS, type JsonObject, type ToolCallContext, type ToolTraits } from '@coxswain/protocol';
import type { FunctionTool } from './function-toolset.ts';
import { type ArgumentsOf, inputSchema, type Parameters, readArguments } from './parameters.ts';
import { runInOrder } from './replace-file.ts';
import type { RootFolder } from './root-folder.ts';

/** Limits of one result. */
export interface ResultBounds {
  /** All text of a result, in bytes as JSON in UTF-8. */
  readonly textMaxBytes: number;
  /** One file in a result, in bytes before base64. */
  readonly fileMaxBytes: number;
}

/** The context of a built-in tool. */
export interface BuiltInContext extends Omit<ToolCallContext, 'root'> {
  readonly root: RootFolder;
  readonly bounds: ResultBounds;
}

/** One built-in tool. `run` may throw: a {@link ToolProblem} keeps its code, any other error becomes `tool_failed`. */
export interface BuiltInTool<P extends Parameters> {
  readonly name: string;
  /** The description for the model. */
  readonly description: string;
  readonly parameters: P;
  readonly traits?: Partial<ToolTraits>;
  /** The argument with the path of the file. Calls with the same path run in the order of their start. */
  readonly fileArgument?: keyof P & string;
  run(args: ArgumentsOf<P>, context: BuiltInContext): Promise<ToolOutcome>;
}

/** Binds a built-in tool to a root folder. */
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
      // The turn is reserved before the first await: the calls of a batch start in order, and keep that order.
      return typeof file === 'string' ? runInOrder(`as asked: ${resolve(root.path, file)}`, work) : work();
    },
  };
}
