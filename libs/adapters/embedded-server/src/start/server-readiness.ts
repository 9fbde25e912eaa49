import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { greetServer } from './nats-greeting.ts';
import type { ProcessExit, ServerProcess } from './server-process.ts';

/** The server to wait for, and the timeout. */
export interface Readiness {
  readonly server: Pick<ServerProcess, 'pid' | 'exited'>;
  /** The folder where the server writes its port. */
  readonly portsDir: string;
  readonly host: string;
  readonly token: string;
  readonly timeoutMs: number;
}

const pollMs = 20;
const greetingTimeoutMs = 5_000;

/**
 * Waits until the server accepts a client and has JetStream enabled.
 *
 * @returns its port.
 * @throws Error with the reason if the server ends, or is not ready (with JetStream) within the timeout.
 */
export async function waitUntilReady({ server, portsDir, host, token, timeoutMs }: Readiness): Promise<number> {
  let exit: ProcessExit | undefined;
  void server.exited.then((how) => {
    exit = how;
  });
  const deadline = performance.now() + timeoutMs;
  let waitingFor = 'it did not say on which port it listens';
  while (performance.now() < deadline) {
    if (exit) throw new Error(`it ended with ${exit.signal ?? `code ${exit.code}`}`);
    const port = await listeningPort(portsDir, server.pid);
    if (port !== undefined) {
      try {
        const greeting = await greetServer(host, port, token, greetingTimeoutMs);
        if (greeting.jetStream) return port;
        waitingFor = 'it runs without JetStream';
      } catch (error) {
        waitingFor = error instanceof Error ? error.message : String(error);
      }
    }
    await sleep(pollMs);
  }
  throw new Error(`it was not ready within ${timeoutMs} ms: ${waitingFor}`);
}

/**
 * The server writes `<program>_<pid>.ports` once it listens: https://docs.nats.io/running-a-nats-service/configuration
 */
async function listeningPort(portsDir: string, pid: number): Promise<number | undefined> {
  const name = (await readdir(portsDir)).find((entry) => entry.endsWith(`_${pid}.ports`));
  if (name === undefined) return undefined;
  try {
    const ports = JSON.parse(await readFile(join(portsDir, name), 'utf8')) as { nats?: string[] };
    const address = ports.nats?.[0];
    return address === undefined ? undefined : Number(new URL(address).port);
  } catch (error) {
    // The server is writing the file; the next round reads it completely.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
