/** The tools of a scene: functions of the test, and the built-in tools if the scene has a root. */
import {
  combineToolSources,
  createBuiltInTools,
  createCodeTools,
  createCrewTools,
  withoutTools,
} from '@coxswain/adapter-tools';
import type { Tool, ToolCallContext } from '@coxswain/client';
import type { ToolSource } from '@coxswain/ports';
import type { CamelCased, ToolResult } from '@coxswain/protocol';
import { SceneError } from './testing-errors.ts';

/** A function that replaces a tool: its return value is the result, an exception is an error result. */
export type ToolFunction = (
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what its script asks for
  args: any,
  context: ToolCallContext,
) => Returned | Promise<Returned>;

type Returned = string | CamelCased<ToolResult>;

/** Tools from `defineTool()`; or functions and fixed texts by the name of the tool. */
export type SceneTools =
  // biome-ignore lint/suspicious/noExplicitAny: each tool has arguments of its own
  readonly Tool<any>[] | Readonly<Record<string, ToolFunction | string>>;

/** The inputs of {@link sceneTools}. */
export interface ToolsOfScene {
  readonly tools: SceneTools;
  /** Without a root there are no built-in tools. */
  readonly root: string | undefined;
  readonly withCrew: boolean;
}

/** Creates the tools of a scene. @throws ToolDefinitionError, or SceneError naming the invalid tool. */
export function sceneTools({ tools, root, withCrew }: ToolsOfScene): ToolSource {
  // biome-ignore lint/suspicious/noExplicitAny: each tool has an input of its own
  const own: readonly Tool<any>[] = Array.isArray(tools)
    ? tools
    : Object.entries(tools as Readonly<Record<string, ToolFunction | string>>).map(namedTool);
  const names = new Set(own.map(({ name }) => name));
  const builtIn = root === undefined ? [] : [createBuiltInTools()];
  const crew = withCrew ? [createCrewTools()] : [];
  return combineToolSources([
    createCodeTools(own),
    ...[...builtIn, ...crew].map((source) => withoutTools(source, names)),
  ]);
}

function namedTool([name, run]: [string, ToolFunction | string]): Tool {
  if (typeof run !== 'function' && typeof run !== 'string')
    throw new SceneError(`the tool ${name} is neither a function nor a text`);
  return {
    name,
    description: `${name}, as the test has it.`,
    inputSchema: { type: 'object' },
    execute: typeof run === 'string' ? () => run : run,
  };
}
