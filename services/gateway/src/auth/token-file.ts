/**
 * Tokens in a file, each with its name, tenant and scopes. The file contains only their SHA-256 hashes. A token is
 * shown once, when it is created.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { stat } from 'node:fs/promises';
import type { Log } from '@coxswain/ports';
import { replaceFile } from '@coxswain/ports/discovery';
import { readRegularFile } from '@coxswain/ports/regular-file';
import { BOUNDS, ID_PATTERN, problemSentences, readStrictly } from '@coxswain/protocol';
import * as z from 'zod';
import { GATEWAY_BOUNDS } from '../context/mod.ts';
import { type Authenticator, type Principal, Scope } from './principal.ts';

/** The entry of a token in the file. */
export const StoredToken = z.strictObject({
  name: z.string().trim().min(1).max(BOUNDS.actorMaxChars),
  tenant: z.string().regex(ID_PATTERN),
  scopes: z.array(Scope).min(1),
  /** Hash of the whole token, in lower-case hex. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime().optional(),
});
export type StoredToken = z.infer<typeof StoredToken>;

const TokenFile = z.strictObject({ tokens: z.array(StoredToken).max(GATEWAY_BOUNDS.tokensMax) });

/** A file with tokens or keys is unreadable or invalid. */
export class TokensUnreadableError extends Error {
  override readonly name = 'TokensUnreadableError';
  readonly code = 'tokens_unreadable';
}

/**
 * Reads the tokens of a file.
 * @throws TokensUnreadableError.
 */
export async function readTokens(path: string): Promise<StoredToken[]> {
  let text: string;
  try {
    text = (await readRegularFile(path, GATEWAY_BOUNDS.tokensFileMaxBytes)).bytes.toString('utf8');
  } catch (error) {
    throw new TokensUnreadableError(`${path} ${(error as Error).message}`, { cause: error });
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The JSON parser's message would quote the file.
    throw new TokensUnreadableError(`${path} is not JSON`);
  }
  const read = readStrictly(TokenFile, value);
  if (!read.ok) throw new TokensUnreadableError(`${path}: ${problemSentences(read.problems).join('; ')}`);
  return read.data.tokens;
}

/**
 * Replaces the file atomically. Only the current user may read it.
 * @throws TokensUnreadableError if the file would be too large to be read; the error of the system.
 */
export async function writeTokens(path: string, tokens: readonly StoredToken[]): Promise<void> {
  const { tokensMax, tokensFileMaxBytes } = GATEWAY_BOUNDS;
  const text = `${JSON.stringify({ tokens }, null, 2)}\n`;
  if (tokens.length > tokensMax || Buffer.byteLength(text) > tokensFileMaxBytes)
    throw new TokensUnreadableError(
      `${path} may have at most ${tokensMax} tokens and ${tokensFileMaxBytes} bytes; nothing was changed: remove tokens first`,
    );
  await replaceFile(path, text);
}

/** A new token with 256 random bits, and its entry for the file. */
export function newToken(
  fields: Omit<StoredToken, 'sha256'>,
  token = `cox_${randomBytes(32).toString('base64url')}`,
): { readonly token: string; readonly stored: StoredToken } {
  return { token, stored: { ...fields, sha256: createHash('sha256').update(token).digest('hex') } };
}

/** Authenticates tokens by their hashes. The time of a lookup reveals nothing about the token itself. */
export class TokenTable implements Authenticator {
  #byHash: ReadonlyMap<string, StoredToken>;
  readonly #now: () => number;

  constructor(tokens: readonly StoredToken[], now: () => number) {
    this.#byHash = indexByHash(tokens);
    this.#now = now;
  }

  replace(tokens: readonly StoredToken[]): void {
    this.#byHash = indexByHash(tokens);
  }

  async authenticate(token: string): Promise<Principal | null> {
    const hash = createHash('sha256').update(token).digest();
    const stored = this.#byHash.get(hash.toString('hex'));
    if (!stored || !timingSafeEqual(Buffer.from(stored.sha256, 'hex'), hash)) return null;
    const expiresAt = stored.expires_at === undefined ? null : Date.parse(stored.expires_at);
    if (expiresAt !== null && expiresAt <= this.#now()) return null;
    return { name: stored.name, tenant: stored.tenant, scopes: new Set(stored.scopes), expiresAt };
  }
}

function indexByHash(tokens: readonly StoredToken[]): ReadonlyMap<string, StoredToken> {
  return new Map(tokens.map((token) => [token.sha256, token]));
}

/**
 * Authenticates with the tokens of a file, and reloads it after a change. A removed token is rejected at most about one
 * second later, also for commands over an open WebSocket. If the changed file is unreadable, the earlier tokens stay
 * valid and the error is logged.
 * @throws TokensUnreadableError if the file is unreadable now.
 */
export async function openTokenFile(path: string, log: Log, now: () => number): Promise<Authenticator> {
  // Get the change mark before reading: a change in between causes another read.
  let seen = await changeMark(path);
  const table = new TokenTable(await readTokens(path), now);
  let checkedAt = now();
  let reloading: Promise<void> | null = null;
  const reload = async () => {
    const mark = await changeMark(path);
    if (mark === seen) return;
    seen = mark;
    try {
      const tokens = await readTokens(path);
      table.replace(tokens);
      log.info({ path, tokens: tokens.length }, 'tokens reloaded');
    } catch (error) {
      log.error({ error, path }, 'tokens cannot be reloaded; the earlier tokens stay valid');
    }
  };
  return {
    async authenticate(token) {
      if (now() - checkedAt >= GATEWAY_BOUNDS.tokensReadEveryMs) {
        checkedAt = now();
        reloading ??= reload().finally(() => {
          reloading = null;
        });
      }
      // A request during a reload waits for the new tokens.
      if (reloading) await reloading;
      return table.authenticate(token);
    },
  };
}

async function changeMark(path: string): Promise<string> {
  try {
    const { ino, mtimeMs, size } = await stat(path);
    return `${ino}:${mtimeMs}:${size}`;
  } catch {
    // The error is logged when the file is read.
    return 'gone';
  }
}
