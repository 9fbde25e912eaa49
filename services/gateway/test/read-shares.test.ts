/** The slots of reads and exports, of all, of each tenant and of each principal. */
import type { BusSession } from '@coxswain/client';
import { expect, onTestFinished, test, vi } from 'vitest';
import { GATEWAY_BOUNDS, type GatewayClient, ReadShares } from '../src/context/mod.ts';
import { appWithoutBus } from './app-without-bus.ts';

const principal = (name: string, tenant = 'default') => ({
  name,
  tenant,
  scopes: new Set(['read' as const]),
  expiresAt: null,
});

/** Whether each promise has resolved. */
async function settled(...promises: readonly Promise<unknown>[]): Promise<boolean[]> {
  const done = promises.map(() => false);
  for (const [at, promise] of promises.entries()) void promise.then(() => (done[at] = true));
  await new Promise((resolve) => setTimeout(resolve));
  return done;
}

test('a principal that occupies its slots waits, and another one gets a slot', async () => {
  const slots = new ReadShares({ all: 6, perPrincipal: 2, waiting: 1 });
  const [alice, bob] = [principal('alice'), principal('bob')];
  const release = await slots.acquire(alice);
  await slots.acquire(alice);
  const waiting = slots.acquire(alice);
  expect(await settled(waiting, slots.acquire(bob))).toEqual([false, true]);
  await expect(slots.acquire(alice)).rejects.toMatchObject({ code: 'gateway_busy' });
  release();
  expect(await settled(waiting)).toEqual([true]);
});

test('the principals of one tenant occupy at most half of the slots', async () => {
  const slots = new ReadShares({ all: 4, perPrincipal: 1, waiting: 1 });
  const release = await slots.acquire(principal('alice'));
  await slots.acquire(principal('bob'));
  const waiting = slots.acquire(principal('carol'));
  const other = slots.acquire(principal('alice', 'other'));
  expect(await settled(waiting, other)).toEqual([false, true]);
  release();
  expect(await settled(waiting)).toEqual([true]);
});

test('an export that leaves the queue occupies no slot', async () => {
  const slots = new ReadShares({ all: 1, perPrincipal: 1, waiting: 1 });
  const release = await slots.acquire(principal('alice'));
  const leaving = new AbortController();
  const left = slots.acquire(principal('bob'), leaving.signal);
  leaving.abort(new Error('left'));
  await expect(left).rejects.toThrow('left');
  release();
  expect(await settled(slots.acquire(principal('bob')))).toEqual([true]);
});

test('both waits of an export share one time limit', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const slots = new ReadShares({ all: 1, perPrincipal: 1, waiting: 1 });
  const release = await slots.acquire(principal('alice'));
  const next = slots.acquire(principal('bob'));
  const outcome = vi.fn();
  slots.acquire(principal('alice')).catch(outcome);
  await vi.advanceTimersByTimeAsync(GATEWAY_BOUNDS.readWaitsMs - 1);
  release();
  await next;
  expect(outcome).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(outcome).toHaveBeenCalledWith(expect.objectContaining({ code: 'gateway_busy' }));
});

test('an export is not affected by other reads', async () => {
  const expensiveReads = new ReadShares({ all: 1, waiting: 0 });
  await expensiveReads.acquire(principal('tester'));
  const session = {
    id: 's',
    ref: { tenant: 'default', sessionId: 's' },
    lastNumber: async () => 1,
    async *export() {
      yield Buffer.from('{}');
    },
  } as unknown as BusSession;
  const { app, authorization } = await appWithoutBus({
    expensiveReads,
    clientOf: () => ({ session: () => session }) as unknown as GatewayClient,
  });
  const headers = { host: 'gateway.test', authorization };
  for (let count = 0; count < 10; count++)
    expect((await app.inject({ url: '/v1/sessions/s/export', headers })).body).toBe('{}\n');
  await app.close();
});
