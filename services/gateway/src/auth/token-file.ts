/**
 * Tokens in a file: who holds each, for which tenant, and what it may. The file has their hashes alone; a token is seen once,
 * when it is made.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { rename, stat, writeFile } from 'node:fs/promises';
import type { Log } from '@coxswain/ports';
import { readRegularFile } from '@coxswain/ports/regular-file';
import { BOUNDS, ID_PATTERN, problemSentences, readStrictly } from '@coxswain/protocol';
import * as z from 'zod';
import { GATEWAY_BOUNDS } from '../gateway-bounds.ts';
import { type Authenticator, type Principal, Scope } from './principal.ts';

/** One token, as the file has it. */
export const StoredToken = z.strictObject({
  name: z.string().trim().min(1).max(BOUNDS.actorMaxChars),
  tenant: z.string().regex(ID_PATTERN),
  scopes: z.array(Scope).min(1),
  /** Of the whole token, hex. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime().optional(),
});
export type StoredToken = z.infer<typeof StoredToken>;

const TokenFile = z.strictObject({ tokens: z.array(StoredToken).max(GATEWAY_BOUNDS.tokensMax) });

/** The file cannot be read, or is none. */
export class TokensUnreadableError extends Error {
  override readonly name = 'TokensUnreadableError';
  readonly code = 'tokens_unreadable';
}

/** The tokens of a file. @throws TokensUnreadableError. */
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
    // The parser's message quotes the file.
    throw new TokensUnreadableError(`${path} is not JSON`);
  }
  const read = readStrictly(TokenFile, value);
  if (!read.ok) throw new TokensUnreadableError(`${path}: ${problemSentences(read.problems).join('; ')}`);
  return read.data.tokens;
}

/** Writes them, in one step and for this user's eyes. */
export async function writeTokens(path: string, tokens: readonly StoredToken[]): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  await writeFile(draft, `${JSON.stringify({ tokens }, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
  await rename(draft, path);
}

/** A new token, 256 bits of chance, and what the file keeps of it. */
export function newToken(
  fields: Omit<StoredToken, 'sha256'>,
  token = `cox_${randomBytes(32).toString('base64url')}`,
): { readonly token: string; readonly stored: StoredToken } {
  return { token, stored: { ...fields, sha256: createHash('sha256').update(token).digest('hex') } };
}

/** Tokens that are known, by their hashes: what is compared says nothing of a token, however long it takes. */
export class TokenTable implements Authenticator {
  #byHash: ReadonlyMap<string, StoredToken>;
  readonly #now: () => number;

  constructor(tokens: readonly StoredToken[], now: () => number) {
    this.#byHash = byHash(tokens);
    this.#now = now;
  }

  replace(tokens: readonly StoredToken[]): void {
    this.#byHash = byHash(tokens);
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

function byHash(tokens: readonly StoredToken[]): ReadonlyMap<string, StoredToken> {
  return new Map(tokens.map((token) => [token.sha256, token]));
}

/**
 * The tokens of a file, which is looked at again when it has changed: a token that is taken out lets nobody in a second later.
 * A file that cannot be read any more leaves what was read before, and is told in the log.
 * @throws TokensUnreadableError where it cannot be read now.
 */
export async function openTokenFile(path: string, log: Log, now: () => number): Promise<Authenticator> {
  // Looked at before it is read: a change in between is read again, and none is missed.
  let seen = await changeMark(path);
  const table = new TokenTable(await readTokens(path), now);
  let lookedAt = now();
  let looking: Promise<void> | null = null;
  const look = async () => {
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
      if (now() - lookedAt >= GATEWAY_BOUNDS.tokensReadEveryMs) {
        lookedAt = now();
        looking ??= look().finally(() => {
          looking = null;
        });
      }
      // Whoever comes while it is read again is judged by the new one.
      if (looking) await looking;
      return table.authenticate(token);
    },
  };
}

async function changeMark(path: string): Promise<string> {
  try {
    const { ino, mtimeMs, size } = await stat(path);
    return `${ino}:${mtimeMs}:${size}`;
  } catch {
    // Told when it is read.
    return 'gone';
  }
}
