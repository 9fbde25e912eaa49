/**
 * Approvals in advance: members of a start that decide calls without asking a person. A sender who may start and not
 * approve must not set them.
 */

import type { ModelSettings, Persona } from '../personas/persona.ts';
import type { CommandBody } from './commands.ts';

type Start = Pick<CommandBody<'start'>, 'persona' | 'personas' | 'permissions' | 'mcp_servers' | 'fork'>;
type Rules = Pick<Persona, 'permissions' | 'mcp_servers'>;

/** The option of a provider with MCP servers that the provider itself calls, in either spelling. */
const PROVIDER_SERVERS = /^mcp_?servers$/i;

/**
 * The first field by which calls or programs would run without an approval, or by which the value of a variable of the
 * host would leave the host:
 * - in a start, or in a persona that the start contains: a permission rule or default that allows, an MCP server that
 *   is a command, or a header of an MCP server with `${`. In such a persona also MCP servers in the options of its
 *   provider, which calls them itself. A persona given by name belongs to the host and is not checked.
 * - in the changes of a fork: such a persona, or replaced verdicts of hooks
 * @returns the path of the field, such as `permissions.rules.0.action`; null if there is none.
 */
export function allowanceOf({ persona, personas = [], fork, ...start }: Start): string | null {
  const { changes } = fork ?? {};
  const brought = [
    ['persona', persona] as const,
    ...personas.map((one, at) => [`personas.${at}`, one] as const),
    ['fork.changes.persona', changes?.persona] as const,
  ];
  const inPersonas = brought.map(([at, one]) => {
    const field = typeof one === 'object' ? (ruleThatAllows(one) ?? serversOfProvider(one)) : null;
    return field && `${at}.${field}`;
  });
  const inVerdicts = changes?.verdicts === undefined ? null : 'fork.changes.verdicts';
  return [ruleThatAllows(start), ...inPersonas, inVerdicts].find((field) => field !== null) ?? null;
}

function ruleThatAllows({ permissions, mcp_servers = {} }: Rules): string | null {
  const rule = permissions?.rules.findIndex(({ action }) => action === 'allow') ?? -1;
  if (rule >= 0) return `permissions.rules.${rule}.action`;
  if (permissions?.default === 'allow') return 'permissions.default';
  for (const [name, server] of Object.entries(mcp_servers)) {
    if ('command' in server) return `mcp_servers.${name}.command`;
    const header = Object.entries(server.headers ?? {}).find(([, value]) => value.includes('${'))?.[0];
    if (header !== undefined) return `mcp_servers.${name}.headers.${header}`;
  }
  return null;
}

function serversOfProvider(persona: Pick<Persona, 'model'>): string | null {
  const model: ModelSettings | undefined = persona.model;
  for (const [provider, options] of Object.entries(model?.provider_options ?? {})) {
    const option = Object.keys(options).find((name) => PROVIDER_SERVERS.test(name));
    if (option !== undefined) return `model.provider_options.${provider}.${option}`;
  }
  return null;
}
