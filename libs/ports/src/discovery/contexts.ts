/**
 * Contexts: named bus addresses with a key file and a tenant. A context replaces `--nats`, `--nkey` and `--tenant`. All
 * contexts are in one file of the user's configuration folder. The file has paths of key files, and no secrets. `cox
 * context` writes it.
 */
import { isAbsolute, join } from 'node:path';
import { ContextsFile, CoxswainError, readStrictly } from '@coxswain/protocol';
import { readPrivateJson } from './private-json.ts';
import { home } from './state-dir.ts';

/** All contexts by name, and the name of the current one. */
export type Contexts = ContextsFile;
/** A stored context. */
export type Context = ContextsFile['contexts'][string];

/** A context with its name. */
export type NamedContext = Context & { readonly name: string };

const FILE_MAX_BYTES = 256 * 1024;

/** The path of the contexts file: `$XDG_CONFIG_HOME/coxswain/contexts.json`; by default under `~/.config`. */
export function contextsFile(env: NodeJS.ProcessEnv): string {
  const { XDG_CONFIG_HOME: named } = env;
  const base = named && isAbsolute(named) ? named : join(home(), '.config');
  return join(base, 'coxswain', 'contexts.json');
}

/**
 * Reads the contexts. Without a file there are no contexts.
 * @throws CoxswainError `contexts_invalid`
 */
export async function readContexts(env: NodeJS.ProcessEnv): Promise<Contexts> {
  const path = contextsFile(env);
  const found = await readPrivateJson(path, {
    maxBytes: FILE_MAX_BYTES,
    // Another user with write access could redirect the connection to another bus.
    refused: { mode: 0o022, why: 'can be changed by other users; check its addresses, then chmod 600 it' },
    read: (value) => readStrictly(ContextsFile, value),
  });
  if (found.status === 'absent') return { current: null, contexts: {} };
  if (found.status === 'unusable')
    throw new CoxswainError('contexts_invalid', `${path} ${found.why}`, { cause: found.cause });
  const { current, contexts } = found.value;
  if (current !== null && !Object.hasOwn(contexts, current))
    throw new CoxswainError('contexts_invalid', `${path} is invalid: current: there is no context ${current}`);
  return found.value;
}

/**
 * Finds a context by name. Without a name it returns the current context, or null.
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
