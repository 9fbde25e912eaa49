/** Answers to questions that arrived over the bus, without a bus. */
import {
  type HookRegistration,
  type Message,
  type ReceivedQuestion,
  ServedHookAnswer,
  sessionRef,
  userText,
} from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { answerHook, type HookService } from '../src/answer-hook.ts';
import { runHookHandler } from '../src/run-hook-handler.ts';

const registration = { id: 'h', point: 'transform_context', timeout_ms: 5_000 } as HookRegistration;
const received: ReceivedQuestion = {
  ref: sessionRef('s1'),
  effectId: '3-0',
  hook: 'h',
  args: {
    point: 'transform_context',
    payload: { persona: 'p', turn: 1 },
    timeout_ms: 5_000,
    fetch: '_INBOX.host.x.c.y',
    shows_messages: true,
  },
  signal: new AbortController().signal,
  traceparent: undefined,
  onFeedback: () => undefined,
};

/** Answers the question with a handler. @param fetch the list that the host provides. */
const answered = (handler: Parameters<typeof runHookHandler>[0], fetch: HookService['fetch']) =>
  answerHook(received, {
    registrationAt: () => registration,
    fetch,
    answer: (question, signal) => runHookHandler(handler, question, signal),
  });

/** The answer to a question for which these messages are shown. @param shape what the handler returns of them. */
const shaped = (shown: readonly Message[], shape: (messages: readonly unknown[]) => readonly unknown[]) =>
  answered(
    (async (_payload: unknown, { messages }: { messages(): Promise<readonly unknown[]> }) => ({
      messages: shape(await messages()),
    })) as never,
    async () => JSON.stringify(shown),
  );

test('equal messages are named by one index each', async () => {
  const shown = [userText('yes'), userText('no'), userText('yes')];
  expect(await shaped(shown, (all) => all)).toEqual({ status: 'shaped', messages: [0, 1, 2] });
  expect(await shaped(shown, ([first, , last]) => [last, first])).toEqual({ status: 'shaped', messages: [0, 2] });
});

test('a message that the handler repeats is returned in full', async () => {
  const repeated = await shaped([userText('yes')], ([first]) => [first, first]);
  expect(repeated).toEqual({ status: 'shaped', messages: [0, userText('yes')] });
});

const failing = () => Promise.reject(new Error('no answer within 5000 ms'));
type Lists = { messages(): Promise<readonly unknown[]> };
test.each<[string, (lists: Lists) => Promise<unknown>, object]>([
  ['catches its error', ({ messages }) => messages().catch(() => undefined), { status: 'returned' }],
  ['does not catch its error', ({ messages }) => messages(), { status: 'failed', code: 'hook_threw' }],
])('a failed fetch is answered if the handler %s', async (_how, read, expected) => {
  expect(await answered(((_: unknown, lists: Lists) => read(lists)) as never, failing)).toMatchObject(expected);
});

test.each([3_000, 200_000])(
  'a return with a key of %i characters that is not JSON is answered with its kind',
  async (length) => {
    const answer = await answered((async () => ({ ['k'.repeat(length)]: () => undefined })) as never, failing);
    expect(answer).toMatchObject({ code: 'return_unreadable', message: expect.stringMatching(/k" is a function$/) });
    expect(ServedHookAnswer.safeParse(answer).success).toBe(true);
  },
);
