/**
 * On which servers these tests run, as `COX_E2E_SERVERS` says:
 * - `one` (the default): each bus is a server of its own, on one replica;
 * - `cluster`: each bus is an account of its own on one cluster of three real servers, all streams on three replicas;
 * - `container`: each bus is a server of its own in a container, of the image that docker-compose.yml names;
 * - the address of a server, `nats://token@host:port` or several with commas between: the buses follow one another on it.
 */
import { parseConnectionUrl } from '@coxswain/adapter-nats';
import { SERVERS_SWITCH } from './servers-switch.ts';

/** What the switch says. */
export type Servers =
  | { readonly kind: 'one' }
  | { readonly kind: 'cluster' }
  | { readonly kind: 'container' }
  /** The address, with credentials in it. */
  | { readonly kind: 'url'; readonly url: string };

/** Reads the switch. @throws an error that says what it takes. */
export function serversFrom(said: string | undefined): Servers {
  if (said === undefined || said === '' || said === 'one') return { kind: 'one' };
  if (said === 'cluster' || said === 'container') return { kind: said };
  const takes = `${SERVERS_SWITCH} takes one, cluster, container, or the address of a server, as nats://token@127.0.0.1:4222`;
  // A word without a port is a slip, and not the name of a host.
  if (!/:\/\/|:\d+/.test(said)) throw new Error(`${takes}; not ${said}`);
  try {
    parseConnectionUrl(said);
  } catch (error) {
    // The address may hold a token, which the message does not.
    throw new Error(`${takes}; ${(error as Error).message}`);
  }
  return { kind: 'url', url: said };
}

/** The switch as it is set here. */
export const servers = (): Servers => serversFrom(process.env[SERVERS_SWITCH]);
