/**
 * Contexts: named addresses of a bus with a key file and a tenant, in place of `--nats`, `--nkey` and `--tenant`. They are in
 * one file of the user's configuration folder, which holds paths of key files and no secrets. `cox context` writes it.
 */
import { stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { ContextsFile, CoxswainError, problemSentences, readStrictly } from '@coxswain/protocol';
import { readRegularFile, UnreadableFileError } from '../regular-file.ts';
import { home } from './state-dir.ts';

/** All contexts by name, and the one in use. */
export type Contexts = ContextsFile;
/** A stored context. */
export type Context = ContextsFile['contexts'][string];

/** A context with its name. */
export type NamedContext = Context & { readonly name: string };

const FILE_MAX_BYTES = 256 * 1024;

/** The file of contexts: `$XDG_CONFIG_HOME/coxswain/contexts.json`, by default in `~/.config`. */
export function contextsFile(env: NodeJS.ProcessEnv): string {
  const { XDG_CONFIG_HOME: named } = env;
  const base = named && isAbsolute(named) ? named : join(home(), '.config');
  return join(base, 'coxswain', 'contexts.json');
}

/**
 * Reads the contexts; none where there is no file.
 * @throws CoxswainError `contexts_invalid`
 */
export async function readContexts(env: NodeJS.ProcessEnv): Promise<Contexts> {
  const path = contextsFile(env);
  const refuse = (why: string, cause?: unknown) => new CoxswainError('contexts_invalid', `${path}: ${why}`, { cause });
  let text: string;
  try {
    text = (await readRegularFile(path, FILE_MAX_BYTES)).bytes.toString('utf8');
  } catch (error) {
    if (error instanceof UnreadableFileError && error.reason === 'not_found') return { current: null, contexts: {} };
    throw refuse((error as Error).message, error);
  }
  // A user who can change the file could name another bus. Windows has no such modes.
  if (process.platform !== 'win32' && ((await stat(path)).mode & 0o022) !== 0)
    throw refuse('other users can change this file; check its addresses, then chmod 600 it');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The cause would quote the file.
    throw refuse('it is not JSON');
  }
  const read = readStrictly(ContextsFile, value);
  if (!read.ok) throw refuse(problemSentences(read.problems).join('; '));
  const { current, contexts } = read.data;
  if (current !== null && !Object.hasOwn(contexts, current)) throw refuse(`current: there is no context ${current}`);
  return read.data;
}

/**
 * The context of a name; without a name the one in use, or null.
 * @throws CoxswainError `context_not_found`, `contexts_invalid`
 */
export async function findContext(env: NodeJS.ProcessEnv, name?: string): Promise<NamedContext | null> {
  const { current, contexts } = await readContexts(env);
  const wanted = name ?? current;
  if (wanted === null) return null;
  const context = Object.hasOwn(contexts, wanted) ? contexts[wanted] : undefined;
  if (context) return { name: wanted, ...context };
  const known = Object.keys(contexts);
  const there = known.length === 0 ? 'no context is stored' : `the contexts are ${known.join(', ')}`;
  throw new CoxswainError('context_not_found', `there is no context ${wanted}; ${there}`);
}
