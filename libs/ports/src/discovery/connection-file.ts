/** `connection.json` of a state directory: the address of the server that runs there. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ConnectionFileInvalidError, StateDirUnusableError } from './discovery-errors.ts';
import { isAlive } from './process-mark.ts';

/** The address of the server of a state directory. */
export interface Connection {
  /** Without credentials: `nats://127.0.0.1:4222`. */
  readonly url: string;
  readonly token: string;
  /** Process id of the nats-server. */
  readonly pid: number;
}

/** The content of the file. */
export interface ConnectionFile extends Connection {
  /** Distinguishes the server from a later process with the same id; see `ProcessMark`. */
  readonly birth: string | null;
}

/** The path of the connection file of a state directory. */
export function connectionFilePath(stateDir: string): string {
  return join(stateDir, 'connection.json');
}

/**
 * The connection to the server of a state directory. `undefined` if no server runs: the file does not exist, or a
 * killed process left it behind.
 *
 * @throws ConnectionFileInvalidError if the file has another content; StateDirUnusableError if the state directory is a
 *   file, or the connection file cannot be read.
 */
export async function readConnection(stateDir: string): Promise<Connection | undefined> {
  const path = connectionFilePath(stateDir);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    if (code === 'ENOTDIR') throw new StateDirUnusableError(stateDir, 'it is not a folder', { cause: error });
    throw new StateDirUnusableError(stateDir, `connection.json cannot be read (${code ?? 'unknown error'})`, {
      cause: error,
    });
  }
  const { url, token, pid, birth } = parse(text, path);
  return (await isAlive({ pid, birth })) ? { url, token, pid } : undefined;
}

function parse(text: string, path: string): ConnectionFile {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ConnectionFileInvalidError(path, 'it is not JSON', { cause: error });
  }
  const { url, token, pid, birth, ...rest } = (value ?? {}) as Record<string, unknown>;
  const unknown = Object.keys(rest);
  if (unknown.length > 0) throw new ConnectionFileInvalidError(path, `unknown field ${unknown.join(', ')}`);
  if (typeof url !== 'string' || !URL.canParse(url)) throw new ConnectionFileInvalidError(path, '"url" is not a URL');
  if (typeof token !== 'string' || token === '') throw new ConnectionFileInvalidError(path, '"token" is missing');
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0) {
    throw new ConnectionFileInvalidError(path, '"pid" is not a process id');
  }
  if (birth !== null && typeof birth !== 'string') throw new ConnectionFileInvalidError(path, '"birth" is not a text');
  return { url, token, pid, birth };
}
