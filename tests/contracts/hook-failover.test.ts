/** Fail-over between instances of a hook service, over a bus in memory, in time that the test moves on. */
import type { HookReply } from '@coxswain/ports';
import { type HookAsked, type HookRegistration, subjects, TenantId } from '@coxswain/protocol';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createHookQuestions } from '../../libs/adapters/nats/src/ask-hooks.ts';
import { createHookFailover } from '../../libs/adapters/nats/src/hook-failover.ts';
import { FakeBus, FakeProcess, hookRequest } from './fake-connection.ts';

const log = { debug() {}, info() {}, warn() {}, error() {} };
const tenant = TenantId.parse('default');

beforeEach(
  () =>
    void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] }),
);
afterEach(() => void vi.useRealTimers());

/** Two instances of a service, whose handler takes its time, and a host that asks. */
function stage({ timeoutMs = 5_000, takesMs = 0 } = {}) {
  const bus = new FakeBus();
  const host = new FakeProcess(bus);
  const ran: string[] = [];
  const instances: { readonly id: string; readonly process: FakeProcess }[] = [];
  const serve = (id: string) => {
    const process = new FakeProcess(bus);
    const callback = (_error: unknown, message: { reply?: string; json(): unknown }) => {
      const { v, hook, session_id, effect_id, callback: back } = message.json() as HookAsked;
      process.nc.publish(back, JSON.stringify({ want: 'taken', instance: id }));
      ran.push(id);
      const answer = { v, hook, session_id, effect_id, status: 'returned', raw: `by ${id}` };
      setTimeout(() => process.nc.publish(message.reply as string, JSON.stringify(answer)), takesMs);
    };
    for (const subject of [subjects.hook(tenant, 'h'), subjects.hookTo(tenant, 'h', id)])
      process.nc.subscribe(subject, { queue: 'hooks', callback: callback as never });
    const instance = { id, process };
    instances.push(instance);
    return instance;
  };
  const [first, other] = [serve('a'), serve('b')];
  const silentSince = new Map<string, number>();
  const left = new Set<string>();
  const failover = createHookFailover(createHookQuestions(host.nc, log), {
    subject: (_request, instance) =>
      instance === undefined ? subjects.hook(tenant, 'h') : subjects.hookTo(tenant, 'h', instance),
    living: () => instances.flatMap(({ id }) => (silentSince.has(id) || left.has(id) ? [] : [id])),
    isExpected: () => instances.some(({ id }) => !left.has(id)),
    silentMs: (_request, id) => performance.now() - (silentSince.get(id) ?? performance.now()),
  });
  const registration = { id: 'h', point: 'PreToolUse', timeout_ms: timeoutMs } as HookRegistration;
  const request = hookRequest(registration);
  return {
    ran,
    host,
    first,
    other,
    serve,
    leave: ({ id }: { id: string }) => left.add(id),
    hearAgain: ({ id }: { id: string }) => silentSince.delete(id),
    silence: ({ id }: { id: string }) => silentSince.set(id, performance.now()),
    ask(signal = new AbortController().signal) {
      const state: { reply?: HookReply } = {};
      void failover.ask(request, signal).then((reply) => {
        state.reply = reply;
      });
      return state;
    },
  };
}
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

test.each([5_000, 2_000])(
  'the other instance is asked when the asked one is frozen before it took the question, time-out %i ms',
  async (timeoutMs) => {
    const { first, silence, ask } = stage({ timeoutMs });
    first.process.freeze();
    silence(first);
    const asked = ask();
    await pass(timeoutMs / 2);
    expect(asked.reply).toEqual({ status: 'returned', raw: 'by b' });
  },
);

test.each(['freeze', 'kill'] as const)('and when it took it, and then: %s', async (how) => {
  const { first, silence, ask, ran } = stage({ takesMs: 500 });
  const asked = ask();
  await pass(100);
  first.process[how]();
  silence(first);
  await pass(2_500);
  expect(asked.reply).toEqual({ status: 'returned', raw: 'by b' });
  expect(ran).toEqual(['a', 'b']);
});

test('a slow handler whose process lives is asked once', async () => {
  const { ask, ran } = stage({ takesMs: 4_500 });
  const asked = ask();
  await pass(4_600);
  expect(asked.reply).toEqual({ status: 'returned', raw: 'by a' });
  expect(ran).toEqual(['a']);
});

test.each([
  [
    'its server is back',
    ({ first, hearAgain }: ReturnType<typeof stage>) => {
      first.process.reconnect();
      hearAgain(first);
    },
  ],
  ['another instance starts', ({ serve }: ReturnType<typeof stage>) => serve('c')],
])('a new question without responders is asked again within its time-out: %s', async (_how, comesBack) => {
  const bed = stage();
  for (const one of [bed.first, bed.other]) {
    one.process.disconnect();
    bed.silence(one);
  }
  const asked = bed.ask();
  await pass(4_000);
  expect(asked.reply).toBeUndefined();
  comesBack(bed);
  await pass(400);
  expect(asked.reply).toMatchObject({ status: 'returned' });
  expect(bed.ran).toHaveLength(1);
});

test('a question whose only instance was killed is asked of the next one that starts', async () => {
  const { first, other, silence, leave, serve, ask, ran } = stage({ timeoutMs: 60_000, takesMs: 500 });
  other.process.kill();
  leave(other);
  const asked = ask();
  await pass(100);
  first.process.kill();
  silence(first);
  await pass(30_000);
  expect(asked.reply).toBeUndefined();
  serve('c');
  await pass(1_000);
  expect(asked.reply).toEqual({ status: 'returned', raw: 'by c' });
  expect(ran).toEqual(['a', 'c']);
});

test('a question that each instance dies of moves three times', async () => {
  const { first, other, silence, serve, ask, ran } = stage({ timeoutMs: 60_000, takesMs: 50_000 });
  const asked = ask();
  for (const one of [first, other, serve('c'), serve('d'), serve('e')]) {
    await pass(100);
    one.process.kill();
    silence(one);
    await pass(4_000);
  }
  expect(ran).toEqual(['a', 'b', 'c', 'd']);
  expect(asked.reply).toBeUndefined();
});

test('where every instance has said that it leaves it is unavailable', async () => {
  const { first, other, leave, ask } = stage();
  for (const one of [first, other]) {
    one.process.kill();
    leave(one);
  }
  const asked = ask();
  await pass(10);
  expect(asked.reply).toMatchObject({ status: 'failed', code: 'hook_unavailable' });
});

test.each(['kill', 'freeze'] as const)('a question ends that its host no longer waits for: %s', async (end) => {
  const { first, other, ask } = stage();
  for (const one of [first, other]) one.process[end]();
  const leaving = new AbortController();
  const asked = ask(leaving.signal);
  await pass(100);
  leaving.abort();
  await pass(10);
  expect(asked.reply).toMatchObject({ status: 'failed', code: 'hook_unavailable' });
  expect(vi.getTimerCount()).toBe(0);
});

test.each([0, 500])('a question outlives the connection of the host, lost after %i ms', async (afterMs) => {
  const { host, ask, ran } = stage({ takesMs: 1_000 });
  if (afterMs === 0) host.disconnect();
  const asked = ask();
  await pass(afterMs);
  if (afterMs > 0) host.disconnect();
  await pass(1_000);
  expect(asked.reply).toBeUndefined();
  host.reconnect();
  await pass(1_100);
  expect(asked.reply).toMatchObject({ status: 'returned' });
  expect(ran.length).toBeLessThanOrEqual(3);
});

test('an instance whose answer was lost with its connection is asked again when it is heard again', async () => {
  const { first, other, silence, hearAgain, ask, ran } = stage({ takesMs: 500 });
  other.process.kill();
  silence(other);
  const asked = ask();
  await pass(100);
  first.process.disconnect();
  silence(first);
  await pass(1_000);
  first.process.reconnect();
  hearAgain(first);
  await pass(800);
  expect(asked.reply).toEqual({ status: 'returned', raw: 'by a' });
  expect(ran).toEqual(['a', 'a']);
});
