/** One handler on one question: it never rejects, and what the handler is shown is its own. */
import { describe, expect, test } from 'vitest';
import { type AnyHandler, type HookQuestion, HookRegistration, runHookHandler, sessionRef } from '../src/mod.ts';

const question = (): HookQuestion => ({
  ref: sessionRef('s'),
  effectId: '3-0',
  registration: HookRegistration.parse({ id: 'guard', point: 'PreToolUse' }),
  payload: { tool: { name: 'read', args: { path: 'a' } } },
  transcript: async () => [{ role: 'user', content: [{ type: 'text', text: 'Hello.' }] }],
  onFeedback: () => undefined,
});

const asked = (handler: AnyHandler) => runHookHandler(handler, question(), new AbortController().signal);

describe('what a handler throws is an answer', () => {
  test.each<[string, unknown, string]>([
    ['an error', new Error('no'), 'no'],
    ['a text', 'no', 'no'],
    ['an error without a message', new TypeError(), 'TypeError'],
    ['what cannot be told', { toString: () => ({}) }, 'it threw what cannot be told'],
    ['a long message', new Error('n'.repeat(501)), `${'n'.repeat(500)}…`],
  ])('%s', async (_, thrown, message) => {
    const failed = { status: 'failed', code: 'hook_threw', message };
    const throwing = () => {
      throw thrown;
    };
    expect(await asked(throwing)).toEqual(failed);
    expect(await asked(async () => throwing())).toEqual(failed);
  });
});

test('what is returned is handed on as it is, whatever it is', async () => {
  expect(await asked(() => 'anything')).toEqual({ status: 'returned', raw: 'anything' });
  expect(await asked(async () => undefined)).toEqual({ status: 'returned', raw: undefined });
});

test('payload, context and transcript are frozen, however deep', async () => {
  const reply = await asked(async (payload, context) => {
    const shown = [payload, context, await context.transcript()];
    const open: object[] = [...shown];
    for (let next = open.pop(); next; next = open.pop()) {
      if (!(next instanceof AbortSignal) && !Object.isFrozen(next)) throw new Error(JSON.stringify(next));
      for (const member of Object.values(next)) if (typeof member === 'object' && member !== null) open.push(member);
    }
    return shown.length;
  });
  expect(reply).toEqual({ status: 'returned', raw: 3 });
});
