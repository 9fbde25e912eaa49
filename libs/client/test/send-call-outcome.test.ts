/** The outcome of a long-running call on its way into the command stream. */
import { type CallEnding, SessionId, sessionRef, TenantId } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { storeCallOutcome } from '../src/send-call-outcome.ts';
import { FULL, storeConnection } from './store-connection.ts';

const ref = sessionRef(SessionId.parse('s'), TenantId.parse('default'));
const call = { idempotencyKey: 'default.s.3-0', toolCallId: 'c', epoch: 1 };
const done = (text: string): CallEnding => ({
  status: 'ok',
  result: { content: [{ type: 'text', text }], is_error: false },
});

/** Sends an outcome to a stream that answers with these, one after the other. */
async function send(ending: CallEnding, ...answers: object[]) {
  const { nc, published } = storeConnection(() => answers.shift());
  const problems: string[] = [];
  const isStored = await storeCallOutcome({ nc }, ref, call, ending, (problem) => problems.push(problem));
  const bodies = published.map(({ text }) => JSON.parse(text) as { status: string; result: { detail?: object } });
  return { isStored, bodies, problems };
}

test('a result waits for space in the command stream, and no error replaces it', async () => {
  const { isStored, bodies } = await send(done('paid'), FULL, { seq: 7 });
  expect(isStored).toBe(true);
  expect(bodies.map(({ status }) => status)).toEqual(['ok', 'ok']);
});

test('an error replaces a result that does not fit into a command', async () => {
  const { isStored, bodies } = await send(done('x'.repeat(2_000_000)), { seq: 7 });
  expect(isStored).toBe(true);
  expect(bodies).toMatchObject([{ status: 'error', result: { detail: { code: 'tool_result_too_large' } } }]);
});
