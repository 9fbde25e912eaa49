/** Where the gateway of `cox up` is, for other shells of the same user: a file that lives as long as its server. */
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** How it is reached. */
export interface GatewayAccess {
  readonly url: string;
  /** May do everything, for as long as this instance runs. */
  readonly token: string;
}

const FILE = 'gateway.json';

/** Its path. */
export function gatewayFile(stateDir: string): string {
  return join(stateDir, FILE);
}

/** Writes the file, readable by this user only, in one step. @param pid of the server: a file of another is an old one. */
export async function writeGatewayFile(stateDir: string, access: GatewayAccess, pid: number): Promise<void> {
  const path = gatewayFile(stateDir);
  await writeFile(`${path}.draft`, `${JSON.stringify({ ...access, pid })}\n`, { mode: 0o600 });
  await rename(`${path}.draft`, path);
}

/** Takes it away; nothing where there is none. */
export function removeGatewayFile(stateDir: string): Promise<void> {
  return rm(gatewayFile(stateDir), { force: true });
}

/** The gateway beside the server of this process id; null where there is none. */
export async function readGatewayFile(stateDir: string, pid: number): Promise<GatewayAccess | null> {
  try {
    const read = JSON.parse(await readFile(gatewayFile(stateDir), 'utf8')) as Partial<GatewayAccess> & {
      pid?: unknown;
    };
    if (read.pid !== pid || typeof read.url !== 'string' || typeof read.token !== 'string') return null;
    return { url: read.url, token: read.token };
  } catch {
    // None was started here, or it was broken off.
    return null;
  }
}
