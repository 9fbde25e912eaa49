/** Expensive reads have limited concurrency. `closed-requests.test.ts` tests a client that leaves the queue. */
import { expect, test, vi } from 'vitest';
import { GATEWAY_BOUNDS, type GatewayClient, ReadShares } from '../src/context/mod.ts';
import { appWithoutBus } from './app-without-bus.ts';

/** An app that reads one list at a time, with one more in the queue. */
async function appWithOneSlot() {
  const expensiveReads = new ReadShares({ all: 1, waiting: 1 });
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
  const reads = new ReadShares({ all: 1, waiting: 1, waitsMs: 20 });
  const ada = { tenant: 'red', name: 'ada' };
  const release = await reads.acquire(ada);
  await expect(reads.acquire(ada)).rejects.toMatchObject({ status: 503, code: 'gateway_busy' });
  release();
  await reads.run(ada, async () => undefined);
});

test.each([
  ['expensiveReadsMax', '/v1/sessions'],
  ['stateReadsMax', '/v1/sessions/s/statechart'],
  ['pageReadsMax', '/v1/sessions/s/events'],
] as const)('the reads of one tenant leave slots of %s to another one', async (bound, url) => {
  const started = vi.fn();
  /** The reads of the tenant `red` never end. */
  const readFor = (tenant: string) => {
    started(tenant);
    return tenant === 'red' ? new Promise<never>(() => undefined) : Promise.resolve(null);
  };
  const clientOf = (tenant: string) => ({
    wire: { listSessions: () => readFor(tenant) },
    session: () => ({
      id: 's',
      ref: { tenant, sessionId: 's' },
      lastNumber: async () => 1,
      newest: () => readFor(tenant),
      journal: () => ({
        [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true, value: await readFor(tenant) }) }),
      }),
    }),
  });
  const { app } = await appWithoutBus({
    authenticator: {
      authenticate: async (tenant) => ({ tenant, name: 'ada', scopes: new Set(['read' as const]), expiresAt: null }),
    },
    clientOf: (tenant) => clientOf(tenant) as unknown as GatewayClient,
  });
  const ask = (tenant: string) =>
    app.inject({ url, headers: { host: 'gateway.test', authorization: `Bearer ${tenant}` } });
  for (let count = 0; count < GATEWAY_BOUNDS[bound]; count++) void ask('red').catch(() => undefined);
  await vi.waitFor(() => expect(started.mock.calls.length).toBeGreaterThanOrEqual(GATEWAY_BOUNDS[bound] / 2));
  expect((await ask('blue')).statusCode).toBeLessThan(500);
});

test('a read that fails releases its slot once', async () => {
  const { listSessions, list } = await appWithOneSlot();
  listSessions.mockRejectedValueOnce(new Error('gone')).mockResolvedValue(NONE);
  expect((await list()).statusCode).toBe(500);
  expect((await Promise.all([list(), list(), list()])).map(({ statusCode }) => statusCode).sort()).toEqual([
    200, 200, 503,
  ]);
});
