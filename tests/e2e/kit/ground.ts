/** What a bus of these tests stands on, by {@link servers}: a server, an account of the cluster, or a server that was named. */
import { findServer, reportTo, startServer } from '@coxswain/adapter-embedded-server';
import { connectionTo, connectNats, ensureStreams, parseConnectionUrl } from '@coxswain/adapter-nats';
import type { NatsConnection } from '@nats-io/transport-node';
import { clusterAccount } from './cluster-accounts.ts';
import { scratchFolder } from './scratch.ts';
import { servers } from './servers.ts';

/** Servers that are up. */
export interface Ground {
  /** With credentials in it, as `cox env` gives it; several addresses with commas between for a cluster. */
  readonly natsUrl: string;
  /** A folder for what programs on this bus keep. */
  readonly stateDir: string;
  stop(): Promise<void>;
}

/** Finds the ground that `COX_E2E_SERVERS` asks for. Streams are there where it is not a server of its own. */
export async function layGround(): Promise<Ground> {
  const asked = servers();
  if (asked.kind === 'one') return ownServer();
  if (asked.kind === 'cluster') return prepared(await clusterAccount(), 3);
  if (asked.kind === 'container') return serverInContainer();
  return prepared(asked.url);
}

/** A server in a folder of its own, or on the folder that an earlier one has left: whatever `COX_E2E_SERVERS` says. */
export async function ownServer(leftBehind?: string): Promise<Ground> {
  // `NATS_URL` is passed over: a test ends and kills what it uses.
  const { NATS_URL: _, ...env } = process.env;
  const found = await findServer({ env, report: reportTo(process.stderr) });
  if (found.kind !== 'binary') throw new Error('a server binary was asked for');
  const stateDir = leftBehind ?? (await scratchFolder('bus'));
  const server = await startServer({ binary: found.path, stateDir });
  const natsUrl = server.url.replace('nats://', `nats://${server.token}@`);
  return { natsUrl, stateDir, stop: () => server.stop() };
}

async function serverInContainer(): Promise<Ground> {
  // Loaded where it is asked for: everybody else can do without the client of a container engine.
  const { startNatsContainer } = await import('../../containers/nats-container.ts');
  const stateDir = await scratchFolder('bus');
  return { ...(await startNatsContainer(stateDir)), stateDir };
}

/** Somebody else's servers: they begin empty, and are left empty. */
async function prepared(natsUrl: string, replicas?: number): Promise<Ground> {
  const nc = await connectNats(connectionTo({ servers: natsUrl }));
  // What a test that was broken off has left; that nobody else's is there has been looked at before the first test.
  await deleteStreams(nc);
  await ensureStreams(nc, { replicas });
  return {
    natsUrl,
    stateDir: await scratchFolder('bus'),
    async stop() {
      await deleteStreams(nc);
      await nc.close();
    },
  };
}

/** The names of the streams that there are. */
export async function streamNames(nc: NatsConnection): Promise<readonly string[]> {
  const answer = await nc.request('$JS.API.STREAM.NAMES', '', { timeout: 10_000 });
  const { streams, error } = answer.json<{ streams?: readonly string[]; error?: { description: string } }>();
  if (error) throw new Error(`these servers keep no streams: ${error.description}`);
  return streams ?? [];
}

/** Deletes all streams, each within the bound. */
export async function deleteStreams(nc: NatsConnection, timeoutMs = 30_000): Promise<void> {
  for (const name of await streamNames(nc))
    await nc.request(`$JS.API.STREAM.DELETE.${name}`, '', { timeout: timeoutMs });
}

/** How a bare client logs in there. */
export function loginOf({ natsUrl }: Ground): { servers: string[]; token?: string; user?: string; pass?: string } {
  const { servers, token, user, password } = parseConnectionUrl(natsUrl);
  return {
    servers: [...servers],
    ...(token === undefined ? {} : { token }),
    ...(user === undefined ? {} : { user, pass: password ?? '' }),
  };
}
