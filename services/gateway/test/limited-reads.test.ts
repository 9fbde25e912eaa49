/** Expensive reads have limited concurrency. `closed-requests.test.ts` tests a client that leaves the queue. */
import { expect, test, vi } from 'vitest';
import { type GatewayClient, LimitedReads } from '../src/context/mod.ts';
import { appWithoutBus } from './app-without-bus.ts';

/** An app that reads one list at a time, with one more in the queue. */
async function appWithOneSlot() {
  const expensiveReads = new LimitedReads(1, 1);
  const waiting = vi.spyOn(expensiveReads, 'run');
  const listSessions = vi.fn<GatewayClient['wire']['listSessions']>();
  const { app, authorization } = await appWithoutBus({
    expensiveReads,
    clientOf: () => ({ wire: { listSessions } }) as unknown as GatewayClient,
  });
  const headers = { host: 'gateway.test', authorization };
  return { waiting, listSessions, list: () => app.inject({ url: '/v1/sessions', headers }) };
}

const NONE = { sessions: [], next_cursor: null };

test('a read waits for a slot; a read beyond the queue is rejected', async () => {
  const { waiting, listSessions, list } = await appWithOneSlot();
  let finish: (list: typeof NONE) => void = () => undefined;
  listSessions.mockResolvedValue(NONE).mockReturnValueOnce(
    new Promise((resolve) => {
      finish = resolve;
    }),
  );
  const answers = [list(), list()];
  await vi.waitFor(() => expect(waiting).toHaveBeenCalledTimes(2), { timeout: 20_000 });
  expect((await list()).json()).toMatchObject({ status: 503, code: 'gateway_busy' });
  expect(listSessions).toHaveBeenCalledTimes(1);
  finish(NONE);
  expect((await Promise.all(answers)).map(({ statusCode }) => statusCode)).toEqual([200, 200]);
});

test('a read that finds no slot in time is rejected', async () => {
  const reads = new LimitedReads(1, 1, 20);
  const release = await reads.acquire();
  await expect(reads.acquire()).rejects.toMatchObject({ status: 503, code: 'gateway_busy' });
  release();
  await reads.run(async () => undefined);
});

test('a read that fails releases its slot once', async () => {
  const { listSessions, list } = await appWithOneSlot();
  listSessions.mockRejectedValueOnce(new Error('gone')).mockResolvedValue(NONE);
  expect((await list()).statusCode).toBe(500);
  expect((await Promise.all([list(), list(), list()])).map(({ statusCode }) => statusCode).sort()).toEqual([
    200, 200, 503,
  ]);
});
