/**
 * Contexts: named addresses of a bus with a key file and a tenant, in place of `--nats`, `--nkey` and `--tenant`. They are in
 * one file of the user's configuration folder, which holds paths of key files and no secrets.
 */
import { homedir, userInfo } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { readRegularFile, UnreadableFileError } from '@coxswain/ports/regular-file';
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

const ContextsFile = z.strictObject({
  current: z.string().regex(CONTEXT_NAME).nullable(),
  contexts: z.record(
    z.string().regex(CONTEXT_NAME),
    z.strictObject({
      nats: z.string().min(1),
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
  try {
    const { bytes } = await readRegularFile(path, FILE_MAX_BYTES);
    const read = ContextsFile.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
    if (read.current === null || Object.hasOwn(read.contexts, read.current)) return read;
    throw new Error(`current: there is no context ${read.current}`);
  } catch (error) {
    if (error instanceof UnreadableFileError && error.reason === 'not_found') return { current: null, contexts: {} };
    const [issue] = error instanceof z.ZodError ? error.issues : [];
    const why = issue ? `${issue.path.join('.')}: ${issue.message}` : (error as Error).message;
    throw new CliError(EXIT.error, 'contexts_invalid', `contexts_invalid: ${path}: ${why}`);
  }
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
