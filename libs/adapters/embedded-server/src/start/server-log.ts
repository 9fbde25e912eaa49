import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** The log file of a server. */
export interface ServerLog {
  readonly path: string;
  /** For the server's standard output and error, which contain configuration errors. */
  readonly fd: number;
  /** The last lines written since the log was opened. Also works after `close`. */
  tail(): Promise<string>;
  /** Closes this process's file descriptor. The server keeps its own. */
  close(): Promise<void>;
}

const tailBytes = 4_096;
const tailLines = 20;

/** Opens the log of a state directory for appending. The server itself limits its size. */
export async function openServerLog(stateDir: string): Promise<ServerLog> {
  const path = join(stateDir, 'nats-server.log');
  const file = await open(path, 'a', 0o600);
  const startsAt = (await file.stat()).size;
  return { path, fd: file.fd, tail: () => readTail(path, startsAt), close: () => file.close() };
}

async function readTail(path: string, startsAt: number): Promise<string> {
  const { size } = await stat(path);
  // A smaller file than before is a new one: the server has rotated its log.
  const from = Math.max(size < startsAt ? 0 : startsAt, size - tailBytes);
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
    return buffer.toString('utf8', 0, bytesRead).trim().split('\n').slice(-tailLines).join('\n');
  } finally {
    await file.close();
  }
}
