/** The tools of an embedded session host. The program's tools replace built-in tools with the same names. */

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

/**
 * Combines the tools of a host. @throws ToolDefinitionError for an invalid tool, or for two tools with the same name.
 */
export function hostTools(tools: readonly EmbeddedTool[], env: NodeJS.ProcessEnv): ToolSource {
  const names = new Set(tools.map(({ name }) => name));
  const builtIn = createBuiltInTools({ runCommand: { socket: env.COX_COMMAND_SOCKET || undefined } });
  return combineToolSources([
    createCodeTools(tools),
    ...[builtIn, createCrewTools()].map((source) => withoutTools(source, names)),
    createMcpTools({ env, publicFetch: createPublicFetch() }),
  ]);
}
