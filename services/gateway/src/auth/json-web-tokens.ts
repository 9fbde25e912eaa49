/** JSON Web Tokens: checked against keys that an identity provider publishes, or that lie in a file. */
import { readRegularFile } from '@coxswain/ports/regular-file';
import { BOUNDS, ID_PATTERN } from '@coxswain/protocol';
import { createLocalJWKSet, createRemoteJWKSet, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { GatewayOptionError } from '../listen-on.ts';
import { Problem } from '../problem.ts';
import { isLoopback } from '../request-guard.ts';
import { type Authenticator, type Principal, SCOPES, type Scope } from './principal.ts';
import { TokensUnreadableError } from './token-file.ts';

/** Which tokens are taken. */
export interface JwtOptions {
  /** A file with a JWK Set, or its https:// address; http:// for loopback only. */
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

/** Authenticates tokens that were issued for this gateway. @throws TokensUnreadableError for a file that is none, GatewayOptionError for an address that is not safe. */
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
        throw new Problem('auth_unavailable', 'the keys of JSON Web Tokens are not available at the moment', {
          headers: { 'retry-after': '5' },
        });
      if (error instanceof errors.JOSEError) return null;
      throw error;
    }
  }
}

async function keysOf(jwks: string): Promise<JWTVerifyGetKey> {
  const address = keyAddressOf(jwks);
  if (address) return createRemoteJWKSet(address, { timeoutDuration: 5_000 });
  let bytes: Buffer;
  try {
    ({ bytes } = await readRegularFile(jwks, KEYS_MAX_BYTES));
  } catch (error) {
    throw new TokensUnreadableError(`${jwks} ${(error as Error).message}`, { cause: error });
  }
  try {
    return createLocalJWKSet(JSON.parse(bytes.toString('utf8')));
  } catch (error) {
    // The JSON parser's message quotes the file.
    const why = error instanceof SyntaxError ? 'it is not JSON' : (error as Error).message;
    throw new TokensUnreadableError(`${jwks} is not a JWK Set: ${why}`);
  }
}

/** Far more than identity providers have keys. */
const KEYS_MAX_BYTES = 1024 * 1024;

/**
 * The address that `--jwks` names; null for a file. The answer of the address must be safe from anyone on the way, who could
 * otherwise sign tokens for the gateway.
 * @throws GatewayOptionError for an address with a user, or that is neither https nor http to loopback.
 */
export function keyAddressOf(jwks: string): URL | null {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(jwks)) return null;
  const url = URL.parse(jwks);
  if (url?.username || url?.password)
    throw new GatewayOptionError('--jwks: the address must not contain a user name or a password');
  // URL writes every spelling of an IPv4 address in one way: 0x7f.1 is 127.0.0.1.
  const isHere = url?.protocol === 'http:' && isLoopback(url.hostname.replace(/^\[|\]$/g, ''));
  if (url && (url.protocol === 'https:' || isHere)) return url;
  throw new GatewayOptionError(
    '--jwks: give an https:// address or a file; http:// is allowed only for 127.0.0.1, [::1] and localhost',
  );
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
