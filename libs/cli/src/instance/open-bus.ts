/** Opens the bus that a command needs, for as long as the command runs. */
import { type Client, connect } from '@coxswain/client';
import { CliError, EXIT } from '../line/cli-error.ts';
import type { Invocation } from '../line/command-spec.ts';
import type { EmbeddedInstance } from './embedded.ts';
import { type BusAddress, findBus } from './find-bus.ts';

/** A bus that is open. */
export interface OpenBus {
  readonly client: Client;
  readonly stateDir: string;
  /** Set where no instance was running and this process runs one. */
  readonly embedded: EmbeddedInstance | null;
  /** Whether sessions on this bus may be worked on while it is open: not where a server was started for reading alone. */
  readonly hosted: boolean;
  close(): Promise<void>;
}

/**
 * Opens the running instance or, where none runs, an embedded one.
 * @param services whether an embedded one is to work on sessions, or only to be read and written to.
 */
export async function openBus({ flags, env }: Pick<Invocation, 'flags' | 'env'>, services: boolean): Promise<OpenBus> {
  const port = flags.whole('port', { min: 1, max: 65_535 });
  const found = await findBus(flags, env);
  if (found.address) {
    const client = await connectTo(found.address);
    return { client, stateDir: found.stateDir, embedded: null, hosted: true, close: () => client.close() };
  }
  const { startEmbedded } = await import('./embedded.ts');
  const embedded = await startEmbedded({ stateDir: found.stateDir, port, services, env });
  try {
    const client = await connect({ servers: embedded.server.url, token: embedded.server.token, name: 'cox' });
    return {
      client,
      stateDir: found.stateDir,
      embedded,
      hosted: services,
      close: async () => {
        try {
          await client.close();
        } finally {
          await embedded.stop();
        }
      },
    };
  } catch (error) {
    await embedded.stop();
    throw error;
  }
}

/** Runs a task with an open bus and closes it, whatever happens. */
export async function withBus<T>(
  invocation: Pick<Invocation, 'flags' | 'env'>,
  services: boolean,
  task: (bus: OpenBus) => Promise<T>,
): Promise<T> {
  const bus = await openBus(invocation, services);
  try {
    return await task(bus);
  } finally {
    await bus.close();
  }
}

/** Connects; what cannot be reached is told with what named it, and without its credentials. */
export async function connectTo(address: BusAddress): Promise<Client> {
  try {
    return await connect({ servers: address.servers, token: address.token, name: 'cox' });
  } catch (error) {
    if (error instanceof TypeError) throw new CliError(EXIT.usage, 'usage', `${address.source}: ${error.message}`);
    const named = address.source === 'state-dir' ? 'the running instance' : `the server that ${address.source} names`;
    throw new CliError(
      EXIT.error,
      'nats_unreachable',
      `nats_unreachable: ${named} cannot be used: ${(error as Error).message}; cox doctor tells more`,
    );
  }
}
