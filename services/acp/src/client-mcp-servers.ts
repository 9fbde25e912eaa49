/** Converts the MCP servers of an editor's request into the form of a session start. */
import { stat } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import type { McpServer as EditorServer } from '@agentclientprotocol/sdk';
import { cutGraphemes, isCredentialName, isReference, type McpServers } from '@coxswain/protocol';
import { ACP_BOUNDS } from './acp-bounds.ts';
import { invalidParams } from './request-errors.ts';

const NAME_MAX_CHARS = 48;

/**
 * The servers, keyed by names that are valid in tool names. Editors send credentials as literals, and a journal would
 * store them. A credential is replaced with a reference to the environment variable of this process that has the same
 * value.
 * @throws RequestError naming the invalid server.
 */
export function mcpServersOf(given: readonly EditorServer[], env: NodeJS.ProcessEnv = process.env): McpServers {
  if (given.length > ACP_BOUNDS.mcpServersMax)
    throw invalidParams(`mcpServers: ${given.length} servers; the limit is ${ACP_BOUNDS.mcpServersMax}`, 'mcpServers');
  const servers: McpServers = {};
  for (const [index, server] of given.entries()) {
    const name = freeName(server.name, servers);
    if (name === null) throw invalidParams(`mcpServers.${index}.name: it has no letter or digit`, 'mcpServers');
    servers[name] = serverOf(server, `mcpServers.${index}`, env);
  }
  return servers;
}

function serverOf(server: EditorServer, field: string, host: NodeJS.ProcessEnv): McpServers[string] {
  const kept = (values: readonly { readonly name: string; readonly value: string }[], member: string) =>
    Object.fromEntries(
      values.map(({ name, value }) => [
        name,
        isCredentialName(name) ? asReference(value, `${field}.${member}.${name}`, host) : value,
      ]),
    );
  if (!('type' in server)) {
    const { command, args, env } = server;
    if (command.trim() === '') throw invalidParams(`${field}.command: it is empty`, field);
    return { command, args, env: kept(env, 'env') };
  }
  if (server.type !== 'http')
    throw invalidParams(`${field}.type: ${server.type} is not supported; use stdio or http (Streamable HTTP)`, field);
  if (!/^https?:\/\/\S+$/.test(server.url))
    throw invalidParams(`${field}.url: it is not an http or https address`, field);
  return { type: 'http', url: server.url, headers: kept(server.headers, 'headers') };
}

/**
 * Replaces a value with `${NAME}`, and keeps the scheme of an `Authorization` header. A reference stays unchanged.
 * @throws RequestError if no variable has the value.
 */
function asReference(value: string, field: string, env: NodeJS.ProcessEnv): string {
  if (isReference(value)) return value;
  const [, scheme = '', secret = ''] = /^((?:Bearer|Basic|Token) +)?([\s\S]*)$/i.exec(value) ?? [];
  const name = Object.keys(env).find((one) => env[one] === secret && VARIABLE.test(one));
  if (name !== undefined) return `${scheme}\${${name}}`;
  throw invalidParams(
    `${field}: a literal credential would be stored in the journal; set it as an environment variable of cox acp, and restart the editor`,
    field,
  );
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * A free name in characters that every provider accepts: each server's tools are named `<server>__<tool>`. @returns
 * null if the given name has no letter or digit.
 */
function freeName(given: string, taken: McpServers): string | null {
  const name = given
    .replace(/[^A-Za-z0-9_-]+/g, '_')
    .replace(/__+/g, '_')
    .slice(0, NAME_MAX_CHARS);
  if (!/[A-Za-z0-9]/.test(name)) return null;
  for (let count = 1; ; count++) {
    const suffix = count === 1 ? '' : `-${count}`;
    const free = `${name.slice(0, NAME_MAX_CHARS - suffix.length)}${suffix}`;
    if (!Object.hasOwn(taken, free)) return free;
  }
}

/** Checks the folder of a session. @returns the folder. @throws RequestError if the path is not absolute. */
export function absoluteFolder(cwd: string): string {
  if (!isAbsolute(cwd)) throw invalidParams(`cwd: must be an absolute path, not "${shortened(cwd)}"`, 'cwd');
  return cwd;
}

/**
 * Checks the folder of a new session.
 * @returns the folder.
 * @throws RequestError naming `cwd` if the path is not absolute, is not a directory, or cannot be read.
 */
export async function existingFolder(cwd: string): Promise<string> {
  const folder = absoluteFolder(cwd);
  let isDirectory: boolean;
  try {
    isDirectory = (await stat(folder)).isDirectory();
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'the directory does not exist' : 'the directory cannot be read';
    throw invalidParams(`cwd: ${why}: "${shortened(folder)}" (${code})`, 'cwd');
  }
  if (!isDirectory) throw invalidParams(`cwd: the path is not a directory: "${shortened(folder)}" (ENOTDIR)`, 'cwd');
  return folder;
}

function shortened(path: string): string {
  return cutGraphemes(path, 256);
}
