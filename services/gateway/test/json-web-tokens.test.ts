/** Whoever issues tokens decides what stands in them: a claim that is not what it has to be lets nobody in, and breaks nothing. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportJWK, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openJsonWebTokens } from '../src/auth/json-web-tokens.ts';
import type { Authenticator, Principal } from '../src/auth/principal.ts';

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

async function shown(claims: Record<string, unknown>): Promise<Principal | null> {
  const all = { scope: 'read', tenant: 'default', sub: 'carol', iss: issuer, aud: audience, exp: NOW_SECONDS + 60 };
  const token = await new SignJWT({ ...all, ...claims })
    .setProtectedHeader({ alg: 'ES256', kid: 'k' })
    .sign(privateKey);
  return authenticator.authenticate(token);
}

test('whoever is named as it has to be is let in', async () => {
  expect(await shown({})).toEqual({
    name: 'carol',
    tenant: 'default',
    scopes: new Set(['read']),
    expiresAt: (NOW_SECONDS + 60) * 1_000,
  });
  for (const sub of ['auth0|5f7c', 'Zoë Müller', '王小明', 'system:serviceaccount:ns:name', 'a@b.example'])
    expect((await shown({ sub }))?.name).toBe(sub);
});

test.each([
  ['a number', 5],
  ['an object', {}],
  ['a list', ['carol']],
  ['nothing', null],
  ['a line break', 'carol\nroot'],
  ['a line break at its end', 'carol\n'],
  ['a control character', 'carol\u001b[2J'],
  ['a character that turns the writing round', 'carol\u202etoor'],
  ['an isolate', '\u2066carol\u2069'],
  ['a separator of lines', 'carol\u2028root'],
  ['what cannot be seen', 'car\u200bol'],
])('a subject that is no printable name lets nobody in: %s', async (_what, sub) => {
  expect(await shown({ sub })).toBeNull();
});

test.each([1e300, 8.64e12 + 1])('an end that is no date lets nobody in: %d', async (exp) => {
  expect(await shown({ exp })).toBeNull();
});

test.each([5, {}, ['default'], null, 'de\nfault'])('a tenant that is no name lets nobody in: %j', async (tenant) => {
  expect(await shown({ tenant })).toBeNull();
});

test('what is no word of a scope allows nothing, and what stands beside it is read', async () => {
  for (const scope of [5, {}, null, [{ toString: 5 }], [['admin']]])
    expect((await shown({ scope }))?.scopes).toEqual(new Set());
  expect((await shown({ scope: [{ toString: 5 }, 'cox:steer'], scp: 7 }))?.scopes).toEqual(new Set(['steer']));
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
