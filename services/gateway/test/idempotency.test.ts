import { ID_PATTERN } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import type { Principal } from '../src/auth/principal.ts';
import { idsOfKey } from '../src/idempotency.ts';

const alice: Principal = { name: 'alice', tenant: 'default', scopes: new Set(), expiresAt: null };

const request = { address: 'POST /v1/sessions', body: { prompt: 'go' } };

test('the same key and request give the same ids, which are ids', () => {
  const ids = idsOfKey('order-17', alice, request);
  expect(idsOfKey('order-17', alice, request)).toEqual(ids);
  for (const id of Object.values(ids)) expect(id).toMatch(ID_PATTERN);
});

test('another request under the same key is another start of the same session, and so is told from the first', () => {
  const [one, other] = [request, { ...request, body: {} }].map((asked) => idsOfKey('k', alice, asked));
  expect(other?.sessionId).toBe(one?.sessionId);
  expect(other?.startId).not.toBe(one?.startId);
});

test('a command is known by its key and its address, whatever its body', () => {
  const of = (address: string, body: unknown) => idsOfKey('k', alice, { address, body }).commandId;
  expect(of('POST /v1/sessions/a/steer', 1)).toBe(of('POST /v1/sessions/a/steer', 2));
  expect(of('POST /v1/sessions/a/steer', 1)).not.toBe(of('POST /v1/sessions/b/steer', 1));
});

test('a key is its holder’s own', () => {
  const ids = [alice, { ...alice, name: 'bob' }, { ...alice, tenant: 'other' }].map((who) =>
    idsOfKey('k', who, request),
  );
  expect(new Set(ids.map(({ sessionId }) => sessionId)).size).toBe(3);
});

test.each(['', ' ', 'a b', 'ü', 'x'.repeat(256)])('%j is no key', (key) => {
  expect(() => idsOfKey(key, alice, request)).toThrow('idempotency-key');
});

test('a body that is nested beyond writing is refused, and is no fault of the gateway', () => {
  const body = JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`) as unknown;
  expect(() => idsOfKey('k', alice, { ...request, body })).toThrow('nested too deep');
});
