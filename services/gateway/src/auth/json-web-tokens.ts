/** JSON Web Tokens: checked against keys that an identity provider publishes, or that lie in a file. */
import { readFile } from 'node:fs/promises';
import { BOUNDS, ID_PATTERN } from '@coxswain/protocol';
import { createLocalJWKSet, createRemoteJWKSet, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { Problem } from '../problem.ts';
import { type Authenticator, type Principal, SCOPES, type Scope } from './principal.ts';
import { TokensUnreadableError } from './token-file.ts';

/** Which tokens are taken. */
export interface JwtOptions {
  /** A file with a JWK Set, or its https:// address. */
  readonly jwks: string;
  /** Who must have issued it, and for whom: both are checked always. */
  readonly issuer: string;
  readonly audience: string;
  /** The claim that names the tenant. Default `tenant`. */
  readonly tenantClaim?: string | undefined;
  readonly now: () => number;
}

/** Never `none`, and no shared secrets: a public key must not be taken for one. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
const CLOCK_TOLERANCE_SECONDS = 30;

/** Lets in whoever shows a token that was issued for this gateway. @throws TokensUnreadableError for a file that is none. */
export async function openJsonWebTokens(options: JwtOptions): Promise<Authenticator> {
  const keys = await keysOf(options.jwks);
  const { issuer, audience, tenantClaim = 'tenant', now } = options;
  return {
    async authenticate(token) {
      if (token.split('.').length !== 3) return null;
      const payload = await verified(token);
      return payload && principalOf(payload, tenantClaim);
    },
  };

  // Apart from what is read of the claims: what is wrong with those must not look like keys that could not be fetched.
  async function verified(token: string): Promise<JWTPayload | null> {
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer,
        audience,
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        requiredClaims: ['exp', 'sub'],
        currentDate: new Date(now()),
      });
      return payload;
    } catch (error) {
      if (isUnavailable(error))
        throw new Problem('auth_unavailable', 'the keys for tokens cannot be had at the moment', {
          headers: { 'retry-after': '5' },
        });
      if (error instanceof errors.JOSEError) return null;
      throw error;
    }
  }
}

async function keysOf(jwks: string): Promise<JWTVerifyGetKey> {
  if (/^https?:\/\//.test(jwks)) return createRemoteJWKSet(new URL(jwks), { timeoutDuration: 5_000 });
  try {
    return createLocalJWKSet(JSON.parse(await readFile(jwks, 'utf8')));
  } catch (error) {
    throw new TokensUnreadableError(`${jwks} is no JWK Set: ${(error as Error).message}`, { cause: error });
  }
}

/** What could not be fetched is not the token's fault; what is wrong with the token is. */
function isUnavailable(error: unknown): boolean {
  if (error instanceof errors.JWKSTimeout) return true;
  // The library's own class for an answer that is no key set, and what fetch throws.
  if (error instanceof errors.JOSEError) return error.code === 'ERR_JOSE_GENERIC';
  return error instanceof TypeError;
}

/** Null where a claim is not what it has to be: whoever issues tokens decides what stands in them. */
function principalOf(payload: JWTPayload, tenantClaim: string): Principal | null {
  const claims: Readonly<Record<string, unknown>> = payload;
  const { [tenantClaim]: tenant, sub, exp } = claims;
  if (typeof tenant !== 'string' || !ID_PATTERN.test(tenant)) return null;
  const name = typeof sub === 'string' && !UNPRINTABLE.test(sub) ? sub.trim() : '';
  if (name === '' || name.length > BOUNDS.actorMaxChars || name.startsWith('session:')) return null;
  if (typeof exp !== 'number' || !(exp <= LAST_DATE_SECONDS)) return null;
  return { name, tenant, scopes: scopesOf(claims), expiresAt: exp * 1_000 };
}

/**
 * A name stands in journals, lists and terminals: what breaks lines, turns the direction of writing or cannot be seen would let one
 * name look like another.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u;
/** The last moment that a date can be (ECMA-262, time values). */
const LAST_DATE_SECONDS = 8.64e12;

/** `scope`, words in a text (RFC 8693), or a list under `scope` or `scp`; each may be led in by `cox:`. */
function scopesOf({ scope, scp }: Readonly<Record<string, unknown>>): ReadonlySet<Scope> {
  const words = [scope, scp]
    .flatMap((claim): unknown[] => (typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : []))
    .filter((word) => typeof word === 'string');
  return new Set(words.map((word) => word.replace(/^cox:/, '')).filter((word): word is Scope => isScope(word)));
}

function isScope(word: string): boolean {
  return (SCOPES as readonly string[]).includes(word);
}
