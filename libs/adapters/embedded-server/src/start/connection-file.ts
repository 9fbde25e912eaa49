/** Writes and removes `connection.json` of a state directory; `@coxswain/ports/discovery` reads it. */
import { rename, rm, writeFile } from 'node:fs/promises';
import { type Connection, type ConnectionFile, connectionFilePath, type ProcessMark } from '@coxswain/ports/discovery';

/** Writes the file atomically, readable by this user only. A power loss leaves no empty file. */
export async function writeConnection(
  stateDir: string,
  server: ProcessMark,
  connection: Omit<Connection, 'pid'>,
): Promise<void> {
  const { url, token } = connection;
  const path = connectionFilePath(stateDir);
  const text = JSON.stringify({ url, token, pid: server.pid, birth: server.birth } satisfies ConnectionFile, null, 2);
  // An existing draft could be a link, or readable by other users.
  await rm(`${path}.draft`, { force: true });
  await writeFile(`${path}.draft`, `${text}\n`, { mode: 0o600, flag: 'wx', flush: true });
  await rename(`${path}.draft`, path);
}

/** Removes the file, if it exists. */
export async function removeConnection(stateDir: string): Promise<void> {
  await rm(connectionFilePath(stateDir), { force: true });
}
