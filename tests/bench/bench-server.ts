/** A NATS server of the bench's own: the embedded one, every write on the disk before it is acknowledged. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findServer, startServer } from '@coxswain/adapter-embedded-server';

/** A server that is up, in a folder of its own. */
export interface BenchServer {
  readonly url: string;
  readonly token: string;
  readonly version: string;
  readonly pid: number;
  /** Ends it, and removes its folder if nobody has named that. */
  stop(): Promise<void>;
}

/** One that has much to write as it stops must not be killed over it: what it reads at its next start would be another figure. */
const STOP_TIMEOUT_MS = 120_000;

/** How a server of the bench is started. */
export interface BenchServerSettings {
  /** A store that is there already, or is to stay: whoever names it removes it. */
  readonly stateDir?: string;
  /** Whether each write is on the disk before it is acknowledged. Default true; a store is filled faster without. */
  readonly syncAlways?: boolean;
}

/** Starts one. `NATS_URL` is passed over: figures of a server that others use would say nothing. */
export async function startBenchServer(settings: BenchServerSettings = {}): Promise<BenchServer> {
  const { NATS_URL: _, ...env } = process.env;
  const found = await findServer({ env });
  if (found.kind !== 'binary') throw new Error('a server binary was asked for');
  const stateDir = settings.stateDir ?? (await mkdtemp(join(tmpdir(), 'cox-bench-nats-')));
  const server = await startServer({
    binary: found.path,
    stateDir,
    syncAlways: settings.syncAlways ?? true,
    stopTimeoutMs: STOP_TIMEOUT_MS,
  });
  return {
    url: server.url,
    token: server.token,
    version: server.version,
    pid: server.pid,
    async stop() {
      await server.stop();
      if (settings.stateDir === undefined) await rm(stateDir, { recursive: true, force: true });
    },
  };
}
