/**
 * On which servers these tests run, as `COX_E2E_SERVERS` says:
 * - `one` (the default): each bus is a server of its own, on one replica;
 * - `cluster`: each bus is an account of its own on one cluster of three real servers, all streams on three replicas;
 * - the address of a server, `nats://token@host:port` or several with commas between: the buses follow one another on it.
 */
import { parseConnectionUrl } from '@coxswain/adapter-nats';

/** What the switch says. */
export type Servers =
  | { readonly kind: 'one' }
  | { readonly kind: 'cluster' }
  /** The address, with credentials in it. */
  | { readonly kind: 'url'; readonly url: string };

/** The switch's name. */
export const SERVERS_SWITCH = 'COX_E2E_SERVERS';

/** Reads the switch. @throws an error that says what it takes. */
export function serversFrom(said: string | undefined): Servers {
  if (said === undefined || said === '' || said === 'one') return { kind: 'one' };
  if (said === 'cluster') return { kind: 'cluster' };
  const takes = `${SERVERS_SWITCH} takes one, cluster, or the address of a server, as nats://token@127.0.0.1:4222`;
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

/** Files whose subject is a server of their own: they start, kill or configure it, so that no other can stand in for it. */
export const OWN_SERVER_FILES: Readonly<Record<string, string>> = {
  'auth-files.test.ts': 'writes keys, and needs no server',
  'auth.test.ts': 'a server that knows the users of cox auth',
  'cli.test.ts': 'cox starts its embedded server',
  'dying-provider.test.ts': 'a bus in memory',
  'embedded-run.test.ts': 'cox run starts its embedded server',
  'embedded-server.test.ts': 'the embedded server itself',
  'main-job.test.ts': 'cox starts its embedded server, which is killed',
  'own-keys.test.ts': 'a server that knows the users of cox auth',
  'roles.test.ts': 'a server that knows the users of cox auth',
  'steering-file.test.ts': 'cox run starts its embedded server',
  'tenants.test.ts': 'a server that knows the users of cox auth',
};
