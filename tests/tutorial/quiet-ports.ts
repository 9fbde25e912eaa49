/** Ports for programs that must be given fixed ones. */
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ports that systems give to programs without a fixed one, and below those that `cox up` selects. */
const QUIET = { from: 10_000, to: 20_000 } as const;

/** @returns this many free ports of loopback, which no other program is given by chance. */
export async function quietPorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = QUIET.from + Math.floor(Math.random() * (QUIET.to - QUIET.from));
    if (!ports.has(port) && (await isFree(port))) ports.add(port);
  }
  return [...ports];
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
