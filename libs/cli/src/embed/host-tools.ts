/** The tools of an embedded session host: those of the program before the built-in ones. */

import { createMcpTools } from '@coxswain/adapter-mcp';
import {
  type CodeTool,
  combineToolSources,
  createBuiltInTools,
  createCodeTools,
  createCrewTools,
  createPublicFetch,
  LATER as TAKEN_UP,
} from '@coxswain/adapter-tools';
import { checkTool, LATER } from '@coxswain/client';
import type { ToolSource } from '@coxswain/ports';
import type { JsonObject, ToolResult } from '@coxswain/protocol';
import type { EmbeddedTool } from './options.ts';

/** The tools of a host. @throws ToolDefinitionError; TypeError for two tools of the same name. */
export async function hostTools(tools: readonly EmbeddedTool[], env: NodeJS.ProcessEnv): Promise<ToolSource> {
  const names = new Set(tools.map(({ name }) => name));
  const builtIn = createBuiltInTools({ runCommand: { socket: env.COX_COMMAND_SOCKET || undefined } });
  return combineToolSources([
    await codeTools(tools),
    ...[builtIn, createCrewTools()].map((source) => without(source, names)),
    createMcpTools({ env, publicFetch: createPublicFetch() }),
  ]);
}

/** Definitions as functions that run in this process. @throws ToolDefinitionError; TypeError for two tools of the same name. */
export async function codeTools(tools: readonly EmbeddedTool[]): Promise<ToolSource> {
  return createCodeTools(await Promise.all(tools.map(codeToolOf)));
}

async function codeToolOf(definition: EmbeddedTool): Promise<CodeTool> {
  const { announced, check, run } = await checkTool(definition);
  return {
    name: announced.name,
    description: announced.description,
    input_schema: announced.input_schema as JsonObject,
    traits: announced.traits,
    async run(args, context) {
      const checked = await check(args);
      if ('problem' in checked)
        return {
          content: [{ type: 'text', text: checked.problem }],
          is_error: true,
          detail: { code: 'invalid_call_arguments' },
        };
      const returned = await run(checked.args, context);
      return returned === LATER ? TAKEN_UP : (returned as string | ToolResult);
    },
  };
}

/** A source without its tools of these names. */
function without(source: ToolSource, names: ReadonlySet<string>): ToolSource {
  return {
    async open(spec, signal) {
      const opened = await source.open(spec, signal);
      if (!('call' in opened)) return opened;
      return {
        call: opened.call.bind(opened),
        probe: opened.probe.bind(opened),
        close: opened.close.bind(opened),
        ...(opened.stop ? { stop: opened.stop.bind(opened) } : {}),
        // The list of a toolset may change while it is open.
        get tools() {
          return opened.tools.filter(({ name }) => !names.has(name));
        },
      };
    },
  };
}
