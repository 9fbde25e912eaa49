/** Which bus a program means, and whether it is there. */
import { resolve } from 'node:path';
import { readConnection } from './connection-file.ts';
import { findContext, type NamedContext } from './contexts.ts';
import { readSeedFile, type SeedCredentials, SeedFileError } from './seed-file.ts';
import { defaultStateDir, typedIn } from './state-dir.ts';

/** What a command line names; all of it goes before the environment. */
export interface BusChoice {
  /** `--nats`: addresses of servers. */
  readonly nats?: string | undefined;
  /** `--nkey`: path of a key file. */
  readonly nkey?: string | undefined;
  /** `--state-dir`: absolute path of a state folder. */
  readonly stateDir?: string | undefined;
  /** `--context`: the name of a context. */
  readonly context?: string | undefined;
}

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

/** A bus, or the state folder in which none runs. */
export type FoundBus =
  | { readonly address: BusAddress; readonly stateDir: string }
  | { readonly address: null; readonly stateDir: string };

/**
 * Finds the bus. The choice comes first: `nats`, the instance of `stateDir`, the context of a name.
 * Then the environment: `NATS_URL`, the instance of `COX_STATE_DIR`.
 * Last come the context in use and the instance of the default state folder.
 * @throws SeedFileError; CoxswainError `contexts_invalid`, `context_not_found`; what {@link readConnection} throws.
 */
export async function findBus(choice: BusChoice, env: NodeJS.ProcessEnv): Promise<FoundBus> {
  const inheritedDir = env.COX_STATE_DIR ? resolve(typedIn(env), env.COX_STATE_DIR) : undefined;
  const stateDir = choice.stateDir ?? inheritedDir ?? defaultStateDir(env);
  if (choice.nats !== undefined) {
    const credentials = await credentialsOf(choice, env);
    return { address: { servers: choice.nats, token: undefined, credentials, source: '--nats' }, stateDir };
  }
  const ownDir = choice.stateDir !== undefined;
  const inherited = env.NATS_URL?.trim();
  if (inherited && !ownDir && choice.context === undefined) {
    const credentials = await credentialsOf(choice, env);
    return { address: { servers: inherited, token: undefined, credentials, source: 'NATS_URL' }, stateDir };
  }
  if (choice.context !== undefined || (!ownDir && inheritedDir === undefined)) {
    const context = await findContext(env, choice.context);
    if (context) {
      const credentials = await credentialsOf(choice, env, context);
      return {
        address: { servers: context.nats, token: undefined, credentials, source: 'context', context },
        stateDir,
      };
    }
  }
  const running = await readConnection(stateDir);
  if (!running) return { address: null, stateDir };
  const { url: servers, token, pid } = running;
  return { address: { servers, token, pid, source: 'state-dir' }, stateDir };
}

async function credentialsOf(
  { nkey }: BusChoice,
  env: NodeJS.ProcessEnv,
  context?: NamedContext,
): Promise<SeedCredentials | undefined> {
  const inherited = env.NATS_NKEY?.trim() || undefined;
  const path = nkey ?? inherited ?? context?.nkey;
  if (!path) return undefined;
  try {
    return await readSeedFile(resolve(typedIn(env), path));
  } catch (error) {
    if (!(error instanceof SeedFileError)) throw error;
    const named = nkey !== undefined ? '--nkey' : inherited ? 'NATS_NKEY' : `nkey of the context ${context?.name}`;
    throw new SeedFileError(`${named}: ${error.message}`, { cause: error });
  }
}
