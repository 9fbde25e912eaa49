/** Tokens and ports that a state directory keeps across restarts, so that connected clients reconnect automatically. */
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { parseConnectionUrl } from '@coxswain/adapter-nats';
import { readPrivateJson, replaceFile } from '@coxswain/ports/discovery';
import { readStrictly } from '@coxswain/protocol';
import * as z from 'zod';

const Port = z.int().min(1).max(65_535);
const Token = z.string().regex(/^[\w-]{16,128}$/, 'must be 16 to 128 letters, digits, "-" and "_"');

const Gateway = z.strictObject({ token: Token, read_token: Token, port: Port });
const KeptAccess = z.strictObject({
  nats: z.strictObject({ token: Token, port: Port }).optional(),
  gateway: Gateway.optional(),
  // `bus`: the addresses without credentials. A token is valid for only one bus.
  bus_gateway: Gateway.extend({ bus: z.string() }).optional(),
});

/** The last access to an instance: its NATS server, its gateway, and its gateway on another bus that the user named. */
export type KeptAccess = z.infer<typeof KeptAccess>;

const FILE_MAX_BYTES = 64 * 1024;

/** The path of the file. */
export function keptAccessFile(stateDir: string): string {
  return join(stateDir, 'access.json');
}

/**
 * Reads the tokens and ports of the last start; empty at the first start.
 * @param say prints that a file cannot be used: this start makes new tokens.
 */
export async function readKeptAccess(stateDir: string, say: (problem: string) => void): Promise<KeptAccess> {
  const path = keptAccessFile(stateDir);
  const found = await readPrivateJson(path, {
    maxBytes: FILE_MAX_BYTES,
    refused: { mode: 0o077, why: 'can be read by other users' },
    read: (value) => readStrictly(KeptAccess, value),
  });
  if (found.status === 'read') return found.value;
  if (found.status === 'unusable') say(`${path} ${found.why}; this start uses new tokens and ports\n`);
  return {};
}

/** The access to the gateway on the instance's own server (`bus` is null), or on a bus that the user named. */
export function gatewayOf(kept: KeptAccess, bus: string | null): z.infer<typeof Gateway> | undefined {
  if (bus === null) return kept.gateway;
  return kept.bus_gateway?.bus === bus ? kept.bus_gateway : undefined;
}

/**
 * Whether an address is the NATS server of the state directory, as `cox env` prints it: its port on this machine, and
 * its token.
 * @throws NatsUrlInvalidError
 */
export function isOwnServer({ nats }: KeptAccess, address: string): boolean {
  const { servers, token } = parseConnectionUrl(address);
  return nats !== undefined && token === nats.token && servers.join() === `nats://127.0.0.1:${nats.port}`;
}

/**
 * Stores access for the next start, readable only by this user. Missing parts stay unchanged. @returns the stored
 * access.
 */
export async function keepAccess(stateDir: string, known: KeptAccess, part: KeptAccess): Promise<KeptAccess> {
  const access = { ...known, ...part };
  if (JSON.stringify(access) !== JSON.stringify(known))
    await replaceFile(keptAccessFile(stateDir), `${JSON.stringify(access)}\n`);
  return access;
}

/** New ports are below the range of outgoing connections: Linux starts it at 32,768, other systems at 49,152. */
const NEW_PORTS = { from: 20_000, to: 32_768 } as const;
const NEW_PORTS_TRIED = 4;

/** The ports to try. */
export interface WantedPort {
  /** The port that the user chose. No other port is tried. */
  readonly given: number | undefined;
  /** The port of the last start. */
  readonly last: number | undefined;
  /** Called when the port of the last start is in use. */
  readonly onTaken: (port: number) => void;
}

/**
 * Starts a server on the port that the user chose, else on the port of the last start, else on a new one.
 * @param start rejects with the code `port_in_use` for a port in use; 0 stands for any free port.
 */
export async function startOnPort<T>(
  { given, last, onTaken }: WantedPort,
  start: (port: number) => Promise<T>,
): Promise<T> {
  if (given !== undefined) return start(given);
  const random = Array.from({ length: NEW_PORTS_TRIED }, () => randomInt(NEW_PORTS.from, NEW_PORTS.to));
  for (const port of last === undefined ? random : [last, ...random]) {
    try {
      return await start(port);
    } catch (error) {
      if ((error as { readonly code?: unknown }).code !== 'port_in_use') throw error;
      if (port === last) onTaken(port);
    }
  }
  return start(0);
}
