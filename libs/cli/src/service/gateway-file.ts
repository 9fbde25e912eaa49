/**
 * The access to the gateway of `cox up` for other shells of the same user: a file that is valid while its server runs.
 */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '@coxswain/ports/discovery';

/** The address and the tokens of a gateway. */
export interface GatewayAccess {
  readonly url: string;
  /** The token with all rights. */
  readonly token: string;
  /** The read-only token; null if an older release started the instance. */
  readonly readToken: string | null;
}

const FILE = 'gateway.json';

/** The path of the file. */
export function gatewayFile(stateDir: string): string {
  return join(stateDir, FILE);
}

/**
 * Writes the file atomically, readable only by this user. @param pid the process id of the server. A file with another
 * id is outdated.
 */
export async function writeGatewayFile(stateDir: string, access: GatewayAccess, pid: number): Promise<void> {
  const path = gatewayFile(stateDir);
  const { url, token, readToken: read_token } = access;
  await replaceFile(path, `${JSON.stringify({ url, token, read_token, pid })}\n`);
}

/** Removes the file if it exists. */
export function removeGatewayFile(stateDir: string): Promise<void> {
  return rm(gatewayFile(stateDir), { force: true });
}

/** Reads the access to the gateway next to the server with this process id; null if there is none. */
export async function readGatewayFile(stateDir: string, pid: number): Promise<GatewayAccess | null> {
  try {
    const {
      url,
      token,
      read_token,
      pid: of,
    } = JSON.parse(await readFile(gatewayFile(stateDir), 'utf8')) as Record<string, unknown>;
    // An older release may have written fewer fields.
    if (of !== pid || typeof url !== 'string' || typeof token !== 'string') return null;
    return { url, token, readToken: typeof read_token === 'string' ? read_token : null };
  } catch {
    // There is no file, or it is incomplete.
    return null;
  }
}
