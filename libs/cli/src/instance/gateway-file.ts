/** Where the gateway of `cox up` is, for other shells of the same user: a file that lives as long as its server. */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from './replace-file.ts';

/** How it is reached. */
export interface GatewayAccess {
  readonly url: string;
  /** May do everything. */
  readonly token: string;
  /** May read and do nothing else; null of an instance of a release that made none. */
  readonly readToken: string | null;
}

const FILE = 'gateway.json';

/** Its path. */
export function gatewayFile(stateDir: string): string {
  return join(stateDir, FILE);
}

/** Writes the file, readable by this user only, in one step. @param pid of the server: a file of another is an old one. */
export async function writeGatewayFile(stateDir: string, access: GatewayAccess, pid: number): Promise<void> {
  const path = gatewayFile(stateDir);
  const { url, token, readToken: read_token } = access;
  await replaceFile(path, `${JSON.stringify({ url, token, read_token, pid })}\n`);
}

/** Takes it away; nothing where there is none. */
export function removeGatewayFile(stateDir: string): Promise<void> {
  return rm(gatewayFile(stateDir), { force: true });
}

/** The gateway beside the server of this process id; null where there is none. */
export async function readGatewayFile(stateDir: string, pid: number): Promise<GatewayAccess | null> {
  try {
    const {
      url,
      token,
      read_token,
      pid: of,
    } = JSON.parse(await readFile(gatewayFile(stateDir), 'utf8')) as Record<string, unknown>;
    // The instance may be of a release that wrote less.
    if (of !== pid || typeof url !== 'string' || typeof token !== 'string') return null;
    return { url, token, readToken: typeof read_token === 'string' ? read_token : null };
  } catch {
    // None was started here, or it was broken off.
    return null;
  }
}
