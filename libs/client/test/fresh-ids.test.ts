import { createHash } from 'node:crypto';
import { ID_PATTERN } from '@coxswain/protocol';
import { expect, test, vi } from 'vitest';
import { newCommandId, newSessionId, sessionIdOfMessage } from '../src/mod.ts';

test('command ids are UUIDv7: version, variant and time stand where RFC 9562 puts them', () => {
  const id = newCommandId(0x0123456789ab);
  expect(id).toMatch(/^01234567-89ab-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test('session ids are short, allowed in subjects, and differ', () => {
  const ids = Array.from({ length: 200 }, newSessionId);
  expect(ids.every((id) => ID_PATTERN.test(id) && id.length === 12)).toBe(true);
  expect(new Set(ids).size).toBe(200);
});

test('chance that is asked for in advance is used once: no two command ids of one moment are the same', () => {
  const ids = Array.from({ length: 500 }, () => newCommandId(0x0123456789ab));
  expect(new Set(ids).size).toBe(500);
});

test('the session id of a message id is its SHA-256, in every program', async () => {
  const id = await sessionIdOfMessage('order 17: é');
  expect(id).toBe(createHash('sha256').update('order 17: é').digest('base64url').slice(0, 32));
  vi.stubGlobal('crypto', {});
  try {
    await expect(sessionIdOfMessage('x')).rejects.toMatchObject({ code: 'invalid_option', option: 'sessionId' });
  } finally {
    vi.unstubAllGlobals();
  }
});
