import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** The file to which a server writes what it does. */
export interface ServerLog {
  readonly path: string;
  /** For the server's standard output and error, where it complains about its configuration. */
  readonly fd: number;
  /** The last lines written since the log was opened; also works once it is closed. */
  tail(): Promise<string>;
  /** Closes this process's hand on it; the server keeps its own. */
  close(): Promise<void>;
}

const tailBytes = 4_096;
const tailLines = 20;

/** Opens the log of a state directory for adding to it. The server itself keeps it from growing without bound. */
export async function openServerLog(stateDir: string): Promise<ServerLog> {
  const path = join(stateDir, 'nats-server.log');
  const file = await open(path, 'a', 0o600);
  const startsAt = (await file.stat()).size;
  return { path, fd: file.fd, tail: () => readTail(path, startsAt), close: () => file.close() };
}

async function readTail(path: string, startsAt: number): Promise<string> {
  const { size } = await stat(path);
  // Smaller than it was: the server has begun a new file.
  const from = Math.max(size < startsAt ? 0 : startsAt, size - tailBytes);
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
    return buffer.toString('utf8', 0, bytesRead).trim().split('\n').slice(-tailLines).join('\n');
  } finally {
    await file.close();
  }
}
