/** Authentication with JSON Web Tokens, verified with the keys of an identity provider or of a file. */
import { readRegularFile } from '@coxswain/ports/regular-file';
import { BOUNDS, ID_PATTERN } from '@coxswain/protocol';
import { createLocalJWKSet, createRemoteJWKSet, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { Problem } from '../context/mod.ts';
import { GatewayOptionError, isLoopback } from '../http/mod.ts';
import { type Authenticator, type Principal, SCOPES, type Scope } from './principal.ts';
import { TokensUnreadableError } from './token-file.ts';

/** Options of JWT authentication. */
export interface JwtOptions {
  /** A file with a JWK Set, or its https:// URL. An http:// URL is allowed for loopback only. */
  readonly jwks: string;
  /** The required claims `iss` and `aud`. Every token is checked for both. */
  readonly issuer: string;
  readonly audience: string;
  /** The name of the claim with the tenant. Default `tenant`. */
  readonly tenantClaim?: string | undefined;
  readonly now: () => number;
}

/**
 * Signature algorithms with key pairs. `none` and shared secrets are excluded: otherwise a public key could be used as
 * a shared secret.
 */
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

/**
 * Creates an authenticator for tokens that were issued for this gateway.
 * @throws TokensUnreadableError for a file that is not a JWK Set; GatewayOptionError for an unsafe URL.
 */
export async function openJsonWebTokens(options: JwtOptions): Promise<Authenticator> {
  const keys = await openKeys(options.jwks);
  const { issuer, audience, tenantClaim = 'tenant', now } = options;
  return {
    async authenticate(token) {
      if (token.split('.').length !== 3) return null;
      const payload = await verifyToken(token);
      return payload && principalOf(payload, tenantClaim);
    },
  };

  // Separate from reading the claims: an error in those must not look like an unavailable key set.
  async function verifyToken(token: string): Promise<JWTPayload | null> {
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

async function openKeys(jwks: string): Promise<JWTVerifyGetKey> {
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
    // The JSON parser's message would quote the file.
    const why = error instanceof SyntaxError ? 'it is not JSON' : (error as Error).message;
    throw new TokensUnreadableError(`${jwks} is not a JWK Set: ${why}`);
  }
}

/** The maximum size of a JWK Set file, far above real key sets. */
const KEYS_MAX_BYTES = 1024 * 1024;

/**
 * The URL in `--jwks`; null for a file. The URL must be protected against interception: an attacker who replaces the
 * keys could sign tokens.
 * @throws GatewayOptionError for a URL with a user name or password, or one that is neither https nor http to loopback.
 */
export function keyAddressOf(jwks: string): URL | null {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(jwks)) return null;
  const url = URL.parse(jwks);
  if (url?.username || url?.password)
    throw new GatewayOptionError('--jwks: the address must not contain a user name or a password');
  // `URL` normalizes IPv4 addresses: 0x7f.1 becomes 127.0.0.1.
  const isLoopbackUrl = url?.protocol === 'http:' && isLoopback(url.hostname.replace(/^\[|\]$/g, ''));
  if (url && (url.protocol === 'https:' || isLoopbackUrl)) return url;
  throw new GatewayOptionError(
    '--jwks: give an https:// address or a file; http:// is allowed only for 127.0.0.1, [::1] and localhost',
  );
}

/** Whether the keys could not be fetched. Other errors are errors of the token. */
function isUnavailable(error: unknown): boolean {
  if (error instanceof errors.JWKSTimeout) return true;
  // jose throws its generic error for a response that is not 200 or not JSON. `fetch` throws a TypeError.
  if (error instanceof errors.JOSEError) return error.code === 'ERR_JOSE_GENERIC';
  return error instanceof TypeError;
}

/** The principal in a token's claims; null if a required claim is missing or invalid. */
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
 * Names appear in journals, lists and terminals. Line breaks, direction marks and invisible characters could make one
 * name look like another.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u;
/** The maximum time value of a `Date` in ECMAScript, in seconds. */
const LAST_DATE_SECONDS = 8.64e12;

/**
 * The scopes in `scope` (words in a text, RFC 8693) or a list in `scope` or `scp`. Each may have the prefix `cox:`.
 * Unknown scopes are ignored.
 */
function scopesOf({ scope, scp }: Readonly<Record<string, unknown>>): ReadonlySet<Scope> {
  const words = [scope, scp]
    .flatMap((claim): unknown[] => (typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : []))
    .filter((word) => typeof word === 'string');
  return new Set(words.map((word) => word.replace(/^cox:/, '')).filter((word): word is Scope => isScope(word)));
}

function isScope(word: string): boolean {
  return (SCOPES as readonly string[]).includes(word);
}
