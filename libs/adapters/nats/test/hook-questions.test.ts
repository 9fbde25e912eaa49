/** The answers of hook services, which are untrusted, without a server. */
import type { AskEnd, Asking } from '@coxswain/bus';
import { BOUNDS, DEFAULT_TENANT, type HookRegistration, type Message, sessionRef, userText } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { createHookQuestions } from '../src/served/hook-questions.ts';

/** The reply to a question for which these messages are shown. */
async function replyTo(named: readonly (number | Message)[], messages: readonly Message[]) {
  const answered = { type: 'answered', answer: { status: 'shaped', messages: [...named] } } as AskEnd;
  const asking = { ask: async () => answered } as Partial<Asking> as Asking;
  const nc = { subscribe: () => ({ unsubscribe: () => undefined }) } as never;
  const questions = createHookQuestions(nc, asking, () => undefined);
  return questions.ask(
    { kind: 'hooks', tenant: DEFAULT_TENANT, name: 'policy' },
    {
      ref: sessionRef('s1'),
      effectId: '1-0',
      registration: { id: 'h', point: 'transform_context', timeout_ms: 5_000 } as HookRegistration,
      payload: {},
      transcript: () => [],
      messages,
      onFeedback: () => undefined,
    },
    new AbortController().signal,
  );
}

const invalid = (message: string) => ({ status: 'failed', code: 'hook_unavailable', message });
const shown = [userText('a'), userText('b')];

test('the messages that a response names are put in its order', async () => {
  const raw = { messages: [userText('b'), userText('new'), userText('a')] };
  expect(await replyTo([1, userText('new'), 0], shown)).toEqual({ status: 'returned', raw });
});

test.each<[string, readonly number[], string]>([
  ['an unknown message', [0, 2], 'the response names unknown messages'],
  ['a message often', Array.from({ length: 250_000 }, () => 0), 'the response names message 0 twice'],
])('a response that names %s is invalid', async (_what, named, problem) => {
  expect(await replyTo(named, shown)).toEqual(invalid(problem));
});

test('a response that names more bytes than a handler may return is invalid', async () => {
  const half = userText('x'.repeat(BOUNDS.transformedViewMaxBytes / 2));
  const problem = `the response names messages of more than ${BOUNDS.transformedViewMaxBytes} bytes`;
  expect(await replyTo([0, 1], [half, { ...half }])).toEqual(invalid(problem));
});
