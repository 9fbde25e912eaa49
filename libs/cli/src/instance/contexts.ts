/**
 * Contexts: named addresses of a bus with a key file and a tenant, in place of `--nats`, `--nkey` and `--tenant`. They are in
 * one file of the user's configuration folder, which holds paths of key files and no secrets.
 */
import { stat } from 'node:fs/promises';
import { homedir, userInfo } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { readRegularFile, UnreadableFileError } from '@coxswain/ports/regular-file';
import { problemSentences, readStrictly } from '@coxswain/protocol';
import * as z from 'zod';
import { CliError, EXIT } from '../line/cli-error.ts';
import { replaceFile } from './replace-file.ts';

/** A stored context. */
export interface Context {
  /** Address without credentials. */
  readonly nats: string;
  /** Absolute path of a key file. */
  readonly nkey?: string | undefined;
  readonly tenant?: string | undefined;
}

/** All contexts by name, and the one in use. */
export interface Contexts {
  readonly current: string | null;
  readonly contexts: Readonly<Record<string, Context>>;
}

/** A context with its name. */
export interface NamedContext extends Context {
  readonly name: string;
}

/** Names of contexts: 1 to 64 of A-Z a-z 0-9 _ -, and not `none`. */
export const CONTEXT_NAME = /^(?!none$)[A-Za-z0-9_-]{1,64}$/;
/** So many contexts fit in the file. */
export const CONTEXTS_MAX = 100;
const FILE_MAX_BYTES = 256 * 1024;

/** Whether an address may be stored: one server over NATS or TLS. What logs in belongs in a key file. */
export function isContextAddress(address: string): boolean {
  const url = URL.canParse(address) ? new URL(address) : null;
  return url !== null && /^(nats|tls):$/.test(url.protocol) && url.username === '' && url.password === '';
}

const ContextsFile = z.strictObject({
  current: z.string().regex(CONTEXT_NAME).nullable(),
  contexts: z.record(
    z.string().regex(CONTEXT_NAME),
    z.strictObject({
      nats: z
        .string()
        .refine(isContextAddress, 'must be nats://host:port or tls://host:port, without token or password'),
      nkey: z.string().min(1).optional(),
      tenant: z.string().min(1).optional(),
    }),
  ),
});

/** The file of contexts: `$XDG_CONFIG_HOME/coxswain/contexts.json`, by default in `~/.config`. */
function contextsFile(env: NodeJS.ProcessEnv): string {
  const { XDG_CONFIG_HOME: named } = env;
  const base = named && isAbsolute(named) ? named : join(homedir() || userInfo().homedir, '.config');
  return join(base, 'coxswain', 'contexts.json');
}

/**
 * Reads the contexts; none where there is no file.
 * @throws CliError `contexts_invalid`
 */
export async function readContexts(env: NodeJS.ProcessEnv): Promise<Contexts> {
  const path = contextsFile(env);
  const invalid = (why: string) => new CliError(EXIT.error, 'contexts_invalid', `contexts_invalid: ${path}: ${why}`);
  let text: string;
  try {
    text = (await readRegularFile(path, FILE_MAX_BYTES)).bytes.toString('utf8');
  } catch (error) {
    if (error instanceof UnreadableFileError && error.reason === 'not_found') return { current: null, contexts: {} };
    throw invalid((error as Error).message);
  }
  // A user who can change the file could name another bus. Windows has no such modes.
  if (process.platform !== 'win32' && ((await stat(path)).mode & 0o022) !== 0)
    throw invalid('other users can change this file; check its addresses, then chmod 600 it');
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw invalid('it is not JSON');
  }
  const read = readStrictly(ContextsFile, json);
  if (!read.ok) throw invalid(problemSentences(read.problems).join('; '));
  const { current, contexts } = read.data;
  if (current !== null && !Object.hasOwn(contexts, current)) throw invalid(`current: there is no context ${current}`);
  return read.data;
}

/** Writes the contexts in one step, readable by this user only. */
export async function writeContexts(env: NodeJS.ProcessEnv, contexts: Contexts): Promise<void> {
  const path = contextsFile(env);
  const { makeFolder } = await import('@coxswain/adapter-nats');
  await makeFolder(dirname(path));
  await replaceFile(path, `${JSON.stringify(contexts, null, 2)}\n`);
}

/**
 * The context of a name; without a name the one in use, or null.
 * @throws CliError `context_not_found`, `contexts_invalid`
 */
export async function findContext(env: NodeJS.ProcessEnv, name?: string): Promise<NamedContext | null> {
  const { current, contexts } = await readContexts(env);
  const wanted = name ?? current;
  if (wanted === null) return null;
  const context = Object.hasOwn(contexts, wanted) ? contexts[wanted] : undefined;
  if (context) return { name: wanted, ...context };
  const known = Object.keys(contexts);
  const there = known.length === 0 ? 'there are none' : `there are ${known.join(', ')}`;
  throw new CliError(EXIT.error, 'context_not_found', `context_not_found: there is no context ${wanted}; ${there}`);
}
