/** Writes and removes `connection.json` of a state folder; `@coxswain/ports/discovery` reads it. */
import { rename, rm, writeFile } from 'node:fs/promises';
import { type Connection, type ConnectionFile, connectionFilePath, type ProcessMark } from '@coxswain/ports/discovery';

/** Writes the file, readable by this user only, in one step. */
export async function writeConnection(
  stateDir: string,
  server: ProcessMark,
  connection: Omit<Connection, 'pid'>,
): Promise<void> {
  const { url, token } = connection;
  const path = connectionFilePath(stateDir);
  const text = JSON.stringify({ url, token, pid: server.pid, birth: server.birth } satisfies ConnectionFile, null, 2);
  // A draft that another has put there could be a link, or readable by others.
  await rm(`${path}.draft`, { force: true });
  await writeFile(`${path}.draft`, `${text}\n`, { mode: 0o600, flag: 'wx' });
  await rename(`${path}.draft`, path);
}

/** Removes the file; nothing when there is none. */
export async function removeConnection(stateDir: string): Promise<void> {
  await rm(connectionFilePath(stateDir), { force: true });
}
