/** What a built-in tool is. */
import type { ToolOutcome } from '@coxswain/ports';
import { DEFAULT_TRAITS, type JsonObject, type ToolTraits } from '@coxswain/protocol';
import type { CallContext, FunctionTool } from './function-toolset.ts';
import { type ArgumentsOf, inputSchema, type Parameters, readArguments } from './parameters.ts';
import type { RootFolder } from './root-folder.ts';

/** Bounds of one result. */
export interface ResultBounds {
  /** All text of a result, as JSON in UTF-8. */
  readonly textMaxBytes: number;
  /** A file in a result, before base64. */
  readonly fileMaxBytes: number;
}

/** What a built-in tool works with. */
export interface BuiltInContext extends CallContext {
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
    run: (args: JsonObject, context) =>
      Promise.resolve().then(() => tool.run(readArguments(tool.parameters, args), { ...context, root, bounds })),
  };
}
