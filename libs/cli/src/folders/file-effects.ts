/** Files of a folder that run code or loosen permissions: its manifest, and personas that `cox` finds by name. */
import { createHash } from 'node:crypto';
import { basename, dirname, join } from 'node:path';
import type { PersonaFile } from '@coxswain/personas/persona-file';
import { BUILT_IN_RULES, type McpServer, type Persona } from '@coxswain/protocol';

/** One file of a folder that needs trust. */
export interface FileNeedingTrust {
  /** Path relative to the folder. */
  readonly name: string;
  /** SHA-256 of the whole content, in hex. */
  readonly digest: string;
  /** Its effects, one fact per line. May quote the file. */
  readonly effects: readonly string[];
}

/**
 * Tools that a persona may allow without the user's trust. They need no approval anyway, or they give work to another
 * persona, which needs its own trust. Any other name may be a tool of the bus, and a glob may match one.
 */
const HARMLESS_TOOLS: ReadonlySet<string> = new Set([
  ...BUILT_IN_RULES.filter(({ action }) => action === 'allow').map(({ tool }) => tool),
  'delegate',
  'handoff',
]);

/** Reads the effects of a manifest. @throws ManifestError if it is invalid. */
export async function manifestOfFolder(path: string): Promise<FileNeedingTrust> {
  const { inspectManifest } = await import('@coxswain/adapter-hooks');
  const { hooks, tools, modules, packages, digest } = await inspectManifest(path);
  return {
    name: basename(path),
    digest,
    effects: [
      ...(modules.length === 0 ? [] : [`runs code with your rights and your keys: ${modules.join(', ')}`]),
      ...(packages.length === 0 ? [] : [`runs the packages ${packages.join(', ')}`]),
      ...hooks.map(({ event, handler }) => `hook at ${event}: ${handler ?? 'no code'}`),
      ...tools.map(({ handler }) => `tools: ${handler}`),
    ],
  };
}

/** Reads the effects of a persona. @returns null if it starts nothing, sends nothing elsewhere and loosens nothing. */
export function personaOfFolder(path: string, { input, persona }: PersonaFile): FileNeedingTrust | null {
  const effects = [...serversOf(persona), ...loosenedBy(persona)];
  if (effects.length === 0) return null;
  const digest = createHash('sha256').update(JSON.stringify(input)).digest('hex');
  return { name: join(basename(dirname(path)), basename(path)), digest, effects };
}

function* serversOf({ mcp_servers = {}, model }: Persona): Generator<string> {
  for (const [name, server] of Object.entries(mcp_servers)) yield `MCP server ${name}: ${inOneLine(server)}`;
  if (typeof model === 'object' && 'base_url' in model && model.base_url !== undefined)
    yield `sends its prompts to ${model.base_url}`;
  if (typeof model !== 'object' || !('provider_options' in model)) return;
  // They can name MCP servers that the provider itself calls, without an approval. Each option has a line, so that a long
  // one does not hide the name of another.
  for (const [provider, options] of Object.entries(model.provider_options ?? {}))
    for (const [name, value] of Object.entries(options))
      yield `sets ${name} in the options of ${provider}: ${JSON.stringify(value)}`;
}

function inOneLine(server: McpServer): string {
  const [values, effects] =
    'url' in server
      ? [server.headers, `connects to ${server.url}`]
      : [server.env, `starts ${[server.command, ...server.args].join(' ')}`];
  const given = Object.entries(values ?? {}).map(([name, value]) => `${name}=${value}`);
  return given.length === 0 ? effects : `${effects} (${given.join(', ')})`;
}

function* loosenedBy({ permissions, hooks = [], on_finish }: Persona): Generator<string> {
  for (const { tool, when, action } of permissions?.rules ?? []) {
    if (action !== 'allow' || HARMLESS_TOOLS.has(tool)) continue;
    yield `allows ${tool} without asking${when === undefined ? '' : ` when ${when}`}`;
  }
  if (permissions?.default === 'allow') yield 'allows every other tool without asking';
  const returns = hooks.filter((hook) => hook.returns !== undefined).map(({ event }) => event);
  if (typeof on_finish === 'object' && on_finish.returns !== undefined) returns.push('on_finish');
  if (returns.length > 0) yield `decides by itself at ${[...new Set(returns)].join(', ')}`;
}
