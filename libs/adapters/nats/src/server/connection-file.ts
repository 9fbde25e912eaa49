import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isAlive, type ProcessMark } from './process-birth.ts';
import { ConnectionFileInvalidError, StateDirUnusableError } from './server-errors.ts';

/** How to reach the server that runs on a state directory. */
export interface Connection {
  /** Without credentials: `nats://127.0.0.1:4222`. `connectionUrl` puts the token in. */
  readonly url: string;
  readonly token: string;
  /** Process id of the nats-server. */
  readonly pid: number;
}

const fileName = 'connection.json';

/**
 * The connection to the server that runs on a state directory, or `undefined` when none runs there: no file, or a file
 * that a killed process left behind.
 *
 * @throws ConnectionFileInvalidError when the file is something else; StateDirUnusableError when the state
 * directory is none; the file system's error when it may not be read.
 */
export async function readConnection(stateDir: string): Promise<Connection | undefined> {
  const path = join(stateDir, fileName);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    if (code === 'ENOTDIR') throw new StateDirUnusableError(stateDir, 'it is not a folder', { cause: error });
    throw error;
  }
  const { url, token, pid, birth } = parse(text, path);
  return (await isAlive({ pid, birth })) ? { url, token, pid } : undefined;
}

/** Writes the file, readable by this user only, in one step. */
export async function writeConnection(
  stateDir: string,
  server: ProcessMark,
  connection: Omit<Connection, 'pid'>,
): Promise<void> {
  const { url, token } = connection;
  const path = join(stateDir, fileName);
  const text = JSON.stringify({ url, token, pid: server.pid, birth: server.birth } satisfies ConnectionFile, null, 2);
  // A draft that another has put there could be a link, or readable by others.
  await rm(`${path}.draft`, { force: true });
  await writeFile(`${path}.draft`, `${text}\n`, { mode: 0o600, flag: 'wx' });
  await rename(`${path}.draft`, path);
}

/** Removes the file; nothing when there is none. */
export async function removeConnection(stateDir: string): Promise<void> {
  await rm(join(stateDir, fileName), { force: true });
}

interface ConnectionFile extends Connection {
  /** Tells the server from a later process with the same id; see {@link ProcessMark}. */
  readonly birth: string | null;
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
  if (typeof url !== 'string' || !URL.canParse(url)) throw new ConnectionFileInvalidError(path, '"url" is no URL');
  if (typeof token !== 'string' || token === '') throw new ConnectionFileInvalidError(path, '"token" is missing');
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0) {
    throw new ConnectionFileInvalidError(path, '"pid" is no process id');
  }
  if (birth !== null && typeof birth !== 'string') throw new ConnectionFileInvalidError(path, '"birth" is no text');
  return { url, token, pid, birth };
}
