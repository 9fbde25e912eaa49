/** The tools of an embedded session host: those of the program before the built-in ones. */

import { createMcpTools } from '@coxswain/adapter-mcp';
import {
  combineToolSources,
  createBuiltInTools,
  createCodeTools,
  createCrewTools,
  createPublicFetch,
  withoutTools,
} from '@coxswain/adapter-tools';
import type { ToolSource } from '@coxswain/ports';
import type { EmbeddedTool } from './options.ts';

/** The tools of a host. @throws ToolDefinitionError, also for two tools of the same name. */
export function hostTools(tools: readonly EmbeddedTool[], env: NodeJS.ProcessEnv): ToolSource {
  const names = new Set(tools.map(({ name }) => name));
  const builtIn = createBuiltInTools({ runCommand: { socket: env.COX_COMMAND_SOCKET || undefined } });
  return combineToolSources([
    createCodeTools(tools),
    ...[builtIn, createCrewTools()].map((source) => withoutTools(source, names)),
    createMcpTools({ env, publicFetch: createPublicFetch() }),
  ]);
}
