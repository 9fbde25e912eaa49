/** The ways in which a client reaches sessions: over the bus, and over HTTP by a gateway. */
import { type Client, connect } from '@coxswain/client';
import type { TestBus } from './bus.ts';
import { startGateway } from './gateway.ts';

/** The name of a way. */
export type TransportName = 'the bus' | 'HTTP';

/** Both. */
export const TRANSPORTS: readonly TransportName[] = ['the bus', 'HTTP'];

/** A client, and what it stands on. */
export interface ConnectedClient {
  readonly client: Client;
  /** One more client of the same way. */
  another(): Promise<Client>;
  close(): Promise<void>;
}

/** Connects, with a gateway of its own where one is needed. */
export async function connectOver(transport: TransportName, bus: TestBus): Promise<ConnectedClient> {
  if (transport === 'the bus') {
    const client = await connect(bus.login);
    return { client, another: () => connect(bus.login), close: () => client.close() };
  }
  const gateway = await startGateway(bus);
  const another = () => connect({ gateway: gateway.url, token: gateway.token });
  const client = await another();
  return {
    client,
    another,
    async close() {
      await client.close();
      await gateway.stop();
    },
  };
}
