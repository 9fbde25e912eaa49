/** Loops over a session whose start was sent without waiting for its receipt. */
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { CommandRejectedError, CoxswainError, ReceiptTimeoutError } from '../src/client-errors.ts';
import { UnansweredStart } from '../src/unanswered-start.ts';

const rejected = new CommandRejectedError('provider_unknown', 'unknown provider "nope"', { field: 'model' });
const isRecord = (item: string) => item === 'record';

/** Yields the items, and then waits until it is stopped. */
const source = (...items: string[]) =>
  async function* (stop: AbortSignal) {
    yield* items;
    if (!stop.aborted) await once(stop, 'abort');
  };

async function all(loop: AsyncIterable<string>): Promise<string[]> {
  const items: string[] = [];
  for await (const item of loop) items.push(item);
  return items;
}

test('a loop without a record throws the rejection of the start, and a later loop throws it at once', async () => {
  let asked = 0;
  const ask = async () => {
    asked++;
    throw rejected;
  };
  const start = new UnansweredStart(ask, 0);
  await expect(all(start.untilRejected(source('connected'), isRecord, undefined))).rejects.toBe(rejected);
  await expect(all(start.untilRejected(source(), isRecord, undefined))).rejects.toBe(rejected);
  expect(asked).toBe(1);
});

const noReceipt = new ReceiptTimeoutError({ commandId: 'c', sessionId: 's', awaited: 'accepted', waitedMs: 5_000 });

test('a question without an answer is asked again', async () => {
  const answers = [noReceipt, noReceipt, rejected];
  const ask = async () => Promise.reject(answers.shift());
  const loop = new UnansweredStart(ask, 0).untilRejected(source(), isRecord, undefined);
  await expect(all(loop)).rejects.toBe(rejected);
});

test('a loop that the caller ends asks no more', async () => {
  const leaving = new AbortController();
  let asked = 0;
  const ask = async ({ signal }: { readonly signal: AbortSignal }) => {
    asked++;
    leaving.abort();
    if (!signal.aborted) await once(signal, 'abort');
    throw noReceipt;
  };
  const loop = new UnansweredStart(ask, 0).untilRejected(source('connected'), isRecord, leaving.signal);
  expect(await all(loop)).toEqual(['connected']);
  expect(asked).toBe(1);
});

test('a record answers the start: a question that is open ends, and nothing is asked later', async () => {
  let open: AbortSignal | undefined;
  let asked: () => void = () => undefined;
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const start = new UnansweredStart(async ({ signal }) => {
    open = signal;
    asked();
    await once(signal, 'abort');
    throw new CoxswainError('aborted', 'the loop goes on');
  }, 0);
  const late = async function* () {
    await isAsked;
    yield 'record';
  };
  expect(await all(start.untilRejected(late, isRecord, undefined))).toEqual(['record']);
  expect(open?.aborted).toBe(true);
});
