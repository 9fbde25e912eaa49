import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findServer, type RunningServer, startServer } from '@coxswain/adapter-embedded-server';

/** A nats-server of the tests' own, with its store in a folder that goes with it. */
export interface TestServer {
  readonly url: string;
  readonly token: string;
  /** Process id of the server that runs now. */
  pid(): number;
  /** Stops it and starts it again on the same port and store. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Enough for a first run, which may have to fetch the server. */
export const serverStartBoundMs = 300_000;

/** Starts one, found as users find it, except that a server they already run is left alone. */
export async function startTestServer(): Promise<TestServer> {
  const { NATS_URL: _, ...env } = process.env;
  const found = await findServer({ env });
  if (found.kind !== 'binary') throw new Error('a binary was asked for');
  const stateDir = await mkdtemp(join(tmpdir(), 'cox-contract-'));
  const start = (at: { port?: number; token?: string }) => startServer({ binary: found.path, stateDir, ...at });
  let server: RunningServer = await start({});
  const { url, token, port } = server;
  return {
    url,
    token,
    pid: () => server.pid,
    async restart() {
      await server.stop();
      server = await start({ port, token });
    },
    async stop() {
      await server.stop();
      await rm(stateDir, { recursive: true, force: true });
    },
  };
}
