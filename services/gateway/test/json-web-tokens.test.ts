/** JSON Web Tokens: a token with an invalid claim is rejected. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportJWK, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Authenticator, openJsonWebTokens, type Principal } from '../src/auth/mod.ts';

const issuer = 'https://login.example';
const audience = 'coxswain';
const NOW_SECONDS = 1_800_000_000;
const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
let folder: string;
let authenticator: Authenticator;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-jwks-'));
  const jwks = join(folder, 'jwks.json');
  await writeFile(jwks, JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'k', alg: 'ES256' }] }));
  authenticator = await openJsonWebTokens({ jwks, issuer, audience, now: () => NOW_SECONDS * 1_000 });
});
afterAll(() => rm(folder, { recursive: true }));

async function authenticated(claims: Record<string, unknown>): Promise<Principal | null> {
  const all = { scope: 'read', tenant: 'default', sub: 'carol', iss: issuer, aud: audience, exp: NOW_SECONDS + 60 };
  const token = await new SignJWT({ ...all, ...claims })
    .setProtectedHeader({ alg: 'ES256', kid: 'k' })
    .sign(privateKey);
  return authenticator.authenticate(token);
}

test('a token with valid claims authenticates its subject', async () => {
  expect(await authenticated({})).toEqual({
    name: 'carol',
    tenant: 'default',
    scopes: new Set(['read']),
    expiresAt: (NOW_SECONDS + 60) * 1_000,
  });
  for (const sub of ['auth0|5f7c', 'Zoë Müller', '王小明', 'system:serviceaccount:ns:name', 'a@b.example'])
    expect((await authenticated({ sub }))?.name).toBe(sub);
});

test.each([
  ['a number', 5],
  ['an object', {}],
  ['a list', ['carol']],
  ['nothing', null],
  ['a line break', 'carol\nroot'],
  ['a line break at its end', 'carol\n'],
  ['a control character', 'carol\u001b[2J'],
  ['a bidirectional override', 'carol\u202etoor'],
  ['an isolate', '\u2066carol\u2069'],
  ['a line separator', 'carol\u2028root'],
  ['an invisible character', 'car\u200bol'],
])('a token whose subject is not a printable name is rejected: %s', async (_what, sub) => {
  expect(await authenticated({ sub })).toBeNull();
});

test.each([1e300, 8.64e12 + 1])('a token whose expiry is not a date is rejected: %d', async (exp) => {
  expect(await authenticated({ exp })).toBeNull();
});

test.each([5, {}, ['default'], null, 'de\nfault'])(
  'a token whose tenant is not a name is rejected: %j',
  async (tenant) => {
    expect(await authenticated({ tenant })).toBeNull();
  },
);

test('an invalid scope allows nothing, and valid scopes next to it count', async () => {
  for (const scope of [5, {}, null, [{ toString: 5 }], [['admin']]])
    expect((await authenticated({ scope }))?.scopes).toEqual(new Set());
  expect((await authenticated({ scope: [{ toString: 5 }, 'cox:steer'], scp: 7 }))?.scopes).toEqual(new Set(['steer']));
});

test.each([
  'http://keys.example/jwks.json',
  'HTTP://keys.example/jwks.json',
  'http://127.0.0.1.evil.example/k',
  'http://localhost:x@evil.example/k',
  'http://localhost.evil.example:80/k',
  'https://user:password@keys.example/k',
  'ftp://keys.example/k',
  'http://',
])('keys are not fetched from %s', async (jwks) => {
  const opened = openJsonWebTokens({ jwks, issuer, audience, now: () => 0 });
  await expect(opened).rejects.toMatchObject({ code: 'gateway_option_invalid', message: /^--jwks: / });
});

test.each(['https://keys.example/k', 'http://127.0.0.1:1/k', 'http://localhost/k', 'http://[::1]:1/k'])(
  'keys may be fetched from %s',
  async (jwks) => {
    await expect(openJsonWebTokens({ jwks, issuer, audience, now: () => 0 })).resolves.toBeDefined();
  },
);

test('an error about a file of keys does not quote it', async () => {
  const jwks = join(folder, 'private');
  await writeFile(jwks, 'SECRET');
  const opened = openJsonWebTokens({ jwks, issuer, audience, now: () => 0 });
  await expect(opened).rejects.toThrow(/private is not a JWK Set: it is not JSON$/);
});
