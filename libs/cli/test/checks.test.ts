/** The checks of `cox doctor`, and their remedies. */
import { ERROR_CATALOGUE } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { remedyOf, streamCheck } from '../src/doctor/mod.ts';

test('no remedy refers to cox doctor itself', () => {
  const codes = Object.keys(ERROR_CATALOGUE);
  expect(
    codes.some((code) => ERROR_CATALOGUE[code as keyof typeof ERROR_CATALOGUE].caller.includes('cox doctor')),
  ).toBe(true);
  for (const code of codes) {
    expect(remedyOf(code), code).not.toContain('cox doctor');
    expect(remedyOf(code), code).toMatch(/^\S.*\S$/);
  }
  expect(remedyOf('nats_unreachable')).toEqual(
    expect.stringMatching(/^Check the address, the token and the servers\. Retry after a restart of a server/),
  );
});

test.each([
  [{ copies: 1, current: 1 }, 'ok', 'stream S: 2 messages, 1 copy'],
  [{ copies: 3, current: 3 }, 'ok', 'stream S: 2 messages, 3 copies'],
  [{ copies: 3, current: 2 }, 'warning', 'stream S: 2 messages, 3 copies, of which 1 is not up to date'],
  [{ copies: 3, current: 3, atRisk: true }, 'warning', expect.stringContaining('its blocks are compressed')],
  [{ copies: 1, current: 1, bytes: 79 }, 'ok', 'stream S: 2 messages, 1 copy'],
  [{ copies: 1, current: 1, bytes: 80 }, 'warning', expect.stringContaining('80 of 100 bytes')],
  [{ copies: 1, current: 1, bytes: 100 }, 'failed', expect.stringContaining('100 of 100 bytes')],
])('the check of a stream reports its copies and its size: %j', (copies, status, message) => {
  const stream = { name: 'S', present: true, messages: 2, bytes: 0, maxBytes: 100, atRisk: false, ...copies };
  expect(streamCheck(stream)).toMatchObject({ status, message });
});

test('the remedy for a full registry is not to delete sessions', () => {
  const registry = { name: 'KV_cox_registry', present: true, messages: 2, bytes: 90, maxBytes: 100, atRisk: false };
  const remedy = expect.stringContaining('keys of the tenant that fills it');
  expect(streamCheck({ ...registry, copies: 1, current: 1 })).toMatchObject({ status: 'warning', remedy });
});
