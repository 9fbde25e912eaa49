/** A NATS server of the bench's own: the embedded one, every write on the disk before it is acknowledged. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findServer, startServer } from '@coxswain/adapter-nats';

/** A server that is up, in a folder of its own. */
export interface BenchServer {
  readonly url: string;
  readonly token: string;
  readonly version: string;
  readonly pid: number;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
}

/** Starts one. `NATS_URL` is passed over: figures of a server that others use would say nothing. */
export async function startBenchServer(): Promise<BenchServer> {
  const { NATS_URL: _, ...env } = process.env;
  const found = await findServer({ env });
  if (found.kind !== 'binary') throw new Error('a server binary was asked for');
  const stateDir = await mkdtemp(join(tmpdir(), 'cox-bench-nats-'));
  const server = await startServer({ binary: found.path, stateDir, syncAlways: true });
  return {
    url: server.url,
    token: server.token,
    version: server.version,
    pid: server.pid,
    async stop() {
      await server.stop();
      await rm(stateDir, { recursive: true, force: true });
    },
  };
}
