/** The tools of a scene: functions of the test, and the built-in ones where it has a folder for them. */
import {
  type CodeTool,
  type CodeToolContext,
  combineToolSources,
  createBuiltInTools,
  createCodeTools,
  createCrewTools,
  LATER as TAKEN_UP,
} from '@coxswain/adapter-tools';
import { checkTool, LATER, type ServedToolDefinition } from '@coxswain/client';
import type { ToolSource } from '@coxswain/ports';
import type { JsonObject, ToolResult } from '@coxswain/protocol';
import { SceneError } from './testing-errors.ts';

/** A function in the place of a tool: what it returns is the result, what it throws an error result. */
export type ToolFunction = (
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what its script asks for
  args: any,
  context: CodeToolContext,
) => string | ToolResult | Promise<string | ToolResult>;

/** Tools as definitions, checked as they are when they are served; or by name, each a function or always the same text. */
export type SceneTools =
  // biome-ignore lint/suspicious/noExplicitAny: each tool has arguments of its own
  readonly ServedToolDefinition<any>[] | Readonly<Record<string, ToolFunction | string>>;

/** What the tools of a scene are made from. */
export interface ToolsOfScene {
  readonly tools: SceneTools;
  /** Without it there are no built-in tools. */
  readonly root: string | undefined;
  readonly withCrew: boolean;
}

/** Makes them. @throws ToolDefinitionError, or SceneError naming the tool that is none. */
export async function sceneTools({ tools, root, withCrew }: ToolsOfScene): Promise<ToolSource> {
  const own = Array.isArray(tools)
    ? await Promise.all(tools.map(codeToolOf))
    : Object.entries(tools as Readonly<Record<string, ToolFunction | string>>).map(namedTool);
  const names = new Set(own.map(({ name }) => name));
  const builtIn = root === undefined ? [] : [createBuiltInTools()];
  const crew = withCrew ? [createCrewTools()] : [];
  return combineToolSources([createCodeTools(own), ...[...builtIn, ...crew].map((source) => without(source, names))]);
}

function namedTool([name, run]: [string, ToolFunction | string]): CodeTool {
  if (typeof run !== 'function' && typeof run !== 'string')
    throw new SceneError(`the tool ${name} is neither a function nor a text`);
  return {
    name,
    description: `${name}, as the test has it.`,
    input_schema: { type: 'object' },
    run: typeof run === 'string' ? () => run : run,
  };
}

/** A definition as a host runs it in its own process: what is checked on the bus is checked here. */
async function codeToolOf(definition: unknown): Promise<CodeTool> {
  const { announced, check, run } = await checkTool(definition);
  return {
    name: announced.name,
    description: announced.description,
    input_schema: announced.input_schema as JsonObject,
    traits: announced.traits,
    async run(args, context) {
      const checked = await check(args);
      if ('problem' in checked) return failed(checked.problem);
      const returned = await run(checked.args, context);
      return returned === LATER ? TAKEN_UP : (returned as string | ToolResult);
    },
  };
}

function failed(text: string): ToolResult {
  return { content: [{ type: 'text', text }], is_error: true, detail: { code: 'invalid_call_arguments' } };
}

/** A source whose tools give way to those of the test. */
function without(source: ToolSource, names: ReadonlySet<string>): ToolSource {
  return {
    async open(spec, signal) {
      const opened = await source.open(spec, signal);
      if (!('call' in opened)) return opened;
      // What the toolset lists may change while it is open.
      return {
        ...bound(opened),
        get tools() {
          return opened.tools.filter(({ name }) => !names.has(name));
        },
      };
    },
  };
}

function bound(toolset: Exclude<Awaited<ReturnType<ToolSource['open']>>, { readonly code: string }>) {
  return {
    call: toolset.call.bind(toolset),
    probe: toolset.probe.bind(toolset),
    close: toolset.close.bind(toolset),
    ...(toolset.stop ? { stop: toolset.stop.bind(toolset) } : {}),
  };
}
