/** Which bus a command line speaks of, and whether it is there. */
import type { Flags } from '../line/flags.ts';
import { stateDirOf } from './state-dir.ts';

/** A bus that can be connected to. */
export interface BusAddress {
  /** May hold credentials: never printed but by `cox env` and the ready line. */
  readonly servers: string;
  readonly token: string | undefined;
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
  if (given !== undefined) return { address: { servers: given, token: undefined, source: '--nats' }, stateDir };
  const inherited = env.NATS_URL?.trim();
  if (inherited && !flags.on('state-dir')) {
    return { address: { servers: inherited, token: undefined, source: 'NATS_URL' }, stateDir };
  }
  const { readConnection } = await import('@coxswain/adapter-nats');
  const running = await readConnection(stateDir);
  if (!running) return { address: null, stateDir };
  return { address: { servers: running.url, token: running.token, source: 'state-dir' }, stateDir };
}
