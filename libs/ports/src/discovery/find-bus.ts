/** Finds the bus that a program connects to. */
import { resolve } from 'node:path';
import { readConnection } from './connection-file.ts';
import { findContext, type NamedContext } from './contexts.ts';
import { readSeedFile, type SeedCredentials, SeedFileError } from './seed-file.ts';
import { callerFolder, defaultStateDir } from './state-dir.ts';

/** The choice of a command line. It takes precedence over the environment. */
export interface BusChoice {
  /** `--nats`: server addresses. */
  readonly nats?: string | undefined;
  /** `--nkey`: the path of a key file. */
  readonly nkey?: string | undefined;
  /** `--state-dir`: the absolute path of a state directory. */
  readonly stateDir?: string | undefined;
  /** `--context`: the name of a context. */
  readonly context?: string | undefined;
}

/** The address of a bus, and the credentials for it. */
export interface BusAddress {
  /** May contain credentials: do not log it. */
  readonly servers: string;
  readonly token: string | undefined;
  /** The key of `--nkey`, `NATS_NKEY` or the context. Undefined for the server of a state directory. */
  readonly credentials?: SeedCredentials | undefined;
  /** The process id of the server of a state directory. */
  readonly pid?: number | undefined;
  /** The source of the address, for messages. */
  readonly source: '--nats' | 'NATS_URL' | 'context' | 'state-dir';
  /** The context that has the address. */
  readonly context?: NamedContext | undefined;
}

/** The address of a bus; null if no server runs in the state directory. */
export type FoundBus =
  | { readonly address: BusAddress; readonly stateDir: string }
  | { readonly address: null; readonly stateDir: string };

/**
 * Finds the bus. The first source that applies decides:
 *
 * 1. `choice.nats`.
 * 2. The context that `choice` names.
 * 3. The server in `choice.stateDir`.
 * 4. `NATS_URL`.
 * 5. The server in `COX_STATE_DIR`.
 * 6. The current context.
 * 7. The server in the default state directory.
 *
 * @throws SeedFileError; CoxswainError `contexts_invalid`, `context_not_found`; the errors of {@link readConnection}.
 */
export async function findBus(choice: BusChoice, env: NodeJS.ProcessEnv): Promise<FoundBus> {
  const inheritedDir = env.COX_STATE_DIR ? resolve(callerFolder(env), env.COX_STATE_DIR) : undefined;
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
    return await readSeedFile(resolve(callerFolder(env), path));
  } catch (error) {
    if (!(error instanceof SeedFileError)) throw error;
    const named = nkey !== undefined ? '--nkey' : inherited ? 'NATS_NKEY' : `nkey of the context ${context?.name}`;
    throw new SeedFileError(`${named}: ${error.message}`, { cause: error });
  }
}
