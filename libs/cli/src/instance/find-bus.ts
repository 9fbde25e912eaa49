/** Which bus a command line speaks of, and whether it is there. */
import { resolve } from 'node:path';
import type { SeedCredentials } from '@coxswain/adapter-nats';
import { usageError } from '../line/cli-error.ts';
import type { Flags } from '../line/flags.ts';
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
  readonly source: '--nats' | 'NATS_URL' | 'state-dir';
}

/** A bus, or the state folder in which none runs. */
export type FoundBus =
  | { readonly address: BusAddress; readonly stateDir: string }
  | { readonly address: null; readonly stateDir: string };

/**
 * Finds the bus: `--nats`; else the instance of `--state-dir` where that was given; else `NATS_URL`; else the instance
 * of the default state folder. What was typed goes before what the environment says.
 */
export async function findBus(flags: Flags, env: NodeJS.ProcessEnv): Promise<FoundBus> {
  const stateDir = stateDirOf(flags, env);
  const given = flags.text('nats');
  if (given !== undefined) {
    const credentials = await credentialsOf(flags, env);
    return { address: { servers: given, token: undefined, credentials, source: '--nats' }, stateDir };
  }
  const inherited = env.NATS_URL?.trim();
  if (inherited && !flags.on('state-dir')) {
    const credentials = await credentialsOf(flags, env);
    return { address: { servers: inherited, token: undefined, credentials, source: 'NATS_URL' }, stateDir };
  }
  if (flags.on('nkey')) throw usageError('--nkey goes with a bus that --nats or NATS_URL names');
  const { readConnection } = await import('@coxswain/adapter-nats');
  const running = await readConnection(stateDir);
  if (!running) return { address: null, stateDir };
  const { url: servers, token, pid } = running;
  return { address: { servers, token, pid, source: 'state-dir' }, stateDir };
}

async function credentialsOf(flags: Flags, env: NodeJS.ProcessEnv): Promise<SeedCredentials | undefined> {
  const typed = flags.text('nkey');
  const path = typed ?? env.NATS_NKEY?.trim();
  if (!path) return undefined;
  const { readSeedFile } = await import('@coxswain/adapter-nats');
  try {
    return await readSeedFile(resolve(typedIn(env), path));
  } catch (error) {
    throw usageError(`${typed === undefined ? 'NATS_NKEY' : '--nkey'}: ${(error as Error).message}`);
  }
}
