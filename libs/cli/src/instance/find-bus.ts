/** Which bus a command line speaks of, and whether it is there. */
import { resolve } from 'node:path';
import type { SeedCredentials } from '@coxswain/adapter-nats';
import { usageError } from '../line/cli-error.ts';
import type { Flags } from '../line/flags.ts';
import { findContext, type NamedContext } from './contexts.ts';
import { stateDirOf, typedIn } from './state-dir.ts';

/** A bus that can be connected to. */
export interface BusAddress {
  /** May hold credentials: never printed but by `cox env` and the ready line. */
  readonly servers: string;
  readonly token: string | undefined;
  /** The key of `--nkey` or NATS_NKEY; never that of a server of our own. */
  readonly credentials?: SeedCredentials | undefined;
  /** The process id of a server of our own. */
  readonly pid?: number | undefined;
  /** What named it, for messages. */
  readonly source: '--nats' | 'NATS_URL' | 'context' | 'state-dir';
  /** The context that named it. */
  readonly context?: NamedContext | undefined;
}

/** What named the bus, for messages: `--nats`, `NATS_URL`, `the context prod`. */
export function describeSource({ source, context }: Pick<BusAddress, 'source' | 'context'>): string {
  return context ? `the context ${context.name}` : source;
}

/** A bus, or the state folder in which none runs. */
export type FoundBus =
  | { readonly address: BusAddress; readonly stateDir: string }
  | { readonly address: null; readonly stateDir: string };

/**
 * Finds the bus. Flags come before the environment, and that before the context in use: `--nats`; the instance of
 * `--state-dir`; the context of `--context`; `NATS_URL`; the instance of `COX_STATE_DIR`; the context in use; the instance of the
 * default state folder.
 */
export async function findBus(flags: Flags, env: NodeJS.ProcessEnv): Promise<FoundBus> {
  const stateDir = stateDirOf(flags, env);
  const given = flags.text('nats');
  const other = ['nats', 'state-dir'].find((name) => flags.on(name));
  if (flags.on('context') && other !== undefined) throw usageError(`--context and --${other} exclude each other`);
  if (given !== undefined) {
    const credentials = await credentialsOf(flags, env);
    return { address: { servers: given, token: undefined, credentials, source: '--nats' }, stateDir };
  }
  const asked = flags.text('context');
  const ownDir = flags.on('state-dir');
  const inherited = env.NATS_URL?.trim();
  if (inherited && !ownDir && asked === undefined) {
    const credentials = await credentialsOf(flags, env);
    return { address: { servers: inherited, token: undefined, credentials, source: 'NATS_URL' }, stateDir };
  }
  if (asked !== undefined || (!ownDir && !env.COX_STATE_DIR)) {
    const context = await findContext(env, asked);
    if (context) {
      const credentials = await credentialsOf(flags, env, context);
      return {
        address: { servers: context.nats, token: undefined, credentials, source: 'context', context },
        stateDir,
      };
    }
  }
  if (flags.on('nkey')) throw usageError('--nkey goes with a bus that --nats, NATS_URL or a context names');
  const { readConnection } = await import('@coxswain/adapter-nats');
  const running = await readConnection(stateDir);
  if (!running) return { address: null, stateDir };
  const { url: servers, token, pid } = running;
  return { address: { servers, token, pid, source: 'state-dir' }, stateDir };
}

async function credentialsOf(
  flags: Flags,
  env: NodeJS.ProcessEnv,
  context?: NamedContext,
): Promise<SeedCredentials | undefined> {
  const typed = flags.text('nkey');
  const inherited = env.NATS_NKEY?.trim() || undefined;
  const path = typed ?? inherited ?? context?.nkey;
  if (!path) return undefined;
  const { readSeedFile } = await import('@coxswain/adapter-nats');
  try {
    return await readSeedFile(resolve(typedIn(env), path));
  } catch (error) {
    const named = typed !== undefined ? '--nkey' : inherited ? 'NATS_NKEY' : `nkey of the context ${context?.name}`;
    throw usageError(`${named}: ${(error as Error).message}`);
  }
}
