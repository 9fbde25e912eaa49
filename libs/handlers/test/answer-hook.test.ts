/** Questions that arrive over a bus. */
import { type HookAsked, type HookRegistration, TenantId } from '@coxswain/protocol';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { answerHook } from '../src/mod.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const asked = {
  v: 1,
  hook: 'policy',
  session_id: 's1',
  effect_id: '1-0',
  point: 'PreToolUse',
  payload: {},
  timeout_ms: 5_000,
  callback: '_INBOX.host.c.1',
} as HookAsked;

test.each([
  ['at once', 0, []],
  ['after a second', 1_000, [['_INBOX.host.c.1', '{"want":"taken","instance":"i1"}']]],
])('a handler answers %s', async (_when, answersAfterMs, confirmed) => {
  const told: [string, string][] = [];
  const callbacks = {
    fetch: () => Promise.reject(new Error('asked for')),
    tell: (...one: [string, string]) => void told.push(one),
  };
  const answer = async () => {
    if (answersAfterMs > 0) await new Promise((resolve) => setTimeout(resolve, answersAfterMs));
    return { status: 'returned' as const, raw: null };
  };
  const reply = answerHook(asked, TenantId.parse('default'), {} as HookRegistration, 'i1', callbacks, answer);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(JSON.parse((await reply) ?? '')).toMatchObject({ status: 'returned', hook: 'policy' });
  expect(told).toEqual(confirmed);
});
