/**
 * Fail-over of questions to hooks, of a hook service and of a persona: the asking and the serving side as they are, over a
 * bus in memory, in time that the test moves on.
 */
import { createAsking, type Instances, RunningWork, type ServedAddress, serveWork } from '@coxswain/bus';
import { answerHook } from '@coxswain/handlers';
import type { HookReply } from '@coxswain/ports';
import { type HookRegistration, SERVED_LIVENESS, TenantId } from '@coxswain/protocol';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createHookQuestions } from '../../libs/adapters/nats/src/served/hook-questions.ts';
import { FakeBus, FakeProcess, hookRequest } from './fake-connection.ts';

const tenant = TenantId.parse('default');
const SERVICES: Record<string, ServedAddress> = {
  'a hook service': { kind: 'hooks', tenant, name: 'policy' },
  'a persona': { kind: 'personas', tenant, name: 'clerk', version: 'v1' },
};

beforeEach(
  () =>
    void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] }),
);
afterEach(() => void vi.useRealTimers());

describe.each(Object.keys(SERVICES))('%s', (kind) => {
  const to = SERVICES[kind] as ServedAddress;

  /** Two instances of a service, whose handler takes its time, and a host that asks. */
  async function stage({ timeoutMs = 5_000, takesMs = 0 } = {}) {
    const bus = new FakeBus();
    const host = new FakeProcess(bus);
    const ran: string[] = [];
    const registration = { id: 'h', point: 'PreToolUse', timeout_ms: timeoutMs } as HookRegistration;
    const request = hookRequest(registration);
    const processes = new Map<string, FakeProcess>();
    const silentSince = new Map<string, number>();
    const left = new Set<string>();
    const known = () => [...processes.keys()].filter((id) => !left.has(id));
    const silentMs = (id: string) => performance.now() - (silentSince.get(id) ?? performance.now());
    const living = () => known().filter((id) => silentMs(id) < SERVED_LIVENESS.ttlMs);
    const instances: Instances = {
      isServed: () => living().length > 0,
      serving: () => [...living()].sort((one, other) => silentMs(one) - silentMs(other)),
      living,
      silent: () => known().filter((id) => silentMs(id) >= SERVED_LIVENESS.ttlMs),
      forget: () => undefined,
      silentMs: (_of, id) => silentMs(id),
      listenedMs: () => 60_000,
    };
    const serve = async (id: string) => {
      const process = new FakeProcess(bus);
      const answer = async () => {
        ran.push(id);
        if (takesMs > 0) await new Promise((resolve) => setTimeout(resolve, takesMs));
        return { status: 'returned' as const, raw: `by ${id}` };
      };
      const service = { registrationAt: () => registration, fetch: () => Promise.reject(new Error()), answer };
      const work = new RunningWork(() => (received) => answerHook(received, service), { tenant });
      await serveWork(process.nc, {
        at: to,
        instance: id,
        work,
        heartbeat: () => ({}),
        announce: async () => undefined,
        problem: () => undefined,
        drainMs: 0,
      });
      processes.set(id, process);
      return { id, process };
    };
    const [first, other] = [await serve('a'), await serve('b')];
    const asking = createAsking(host.nc, instances, () => undefined);
    const questions = createHookQuestions(host.nc, asking, () => undefined);
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
        void questions.ask(to, request, signal).then((reply) => {
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
      const { first, silence, ask } = await stage({ timeoutMs });
      first.process.freeze();
      silence(first);
      const asked = ask();
      await pass(timeoutMs / 2);
      expect(asked.reply).toEqual({ status: 'returned', raw: 'by b' });
    },
  );

  test.each(['freeze', 'kill'] as const)('and when it took it, and then: %s', async (how) => {
    const { first, silence, ask, ran } = await stage({ takesMs: 500 });
    const asked = ask();
    await pass(100);
    first.process[how]();
    silence(first);
    await pass(2_500);
    expect(asked.reply).toEqual({ status: 'returned', raw: 'by b' });
    expect(ran).toEqual(['a', 'b']);
  });

  test('a slow handler whose process lives is asked once', async () => {
    const { ask, ran } = await stage({ takesMs: 4_500 });
    const asked = ask();
    await pass(4_600);
    expect(asked.reply).toEqual({ status: 'returned', raw: 'by a' });
    expect(ran).toEqual(['a']);
  });

  test.each([
    [
      'its server is back',
      ({ first, hearAgain }: Awaited<ReturnType<typeof stage>>) => {
        first.process.reconnect();
        hearAgain(first);
      },
    ],
    ['another instance starts', ({ serve }: Awaited<ReturnType<typeof stage>>) => serve('c')],
  ])('a new question without responders is asked again within its time-out: %s', async (_how, comesBack) => {
    const bed = await stage();
    for (const one of [bed.first, bed.other]) {
      one.process.disconnect();
      bed.silence(one);
    }
    const asked = bed.ask();
    await pass(4_000);
    expect(asked.reply).toBeUndefined();
    comesBack(bed);
    await pass(1_300);
    expect(asked.reply).toMatchObject({ status: 'returned' });
    expect(bed.ran).toHaveLength(1);
  });

  test('a question whose only instance was killed is asked of the next one that starts', async () => {
    const { first, other, silence, leave, serve, ask, ran } = await stage({ timeoutMs: 60_000, takesMs: 500 });
    other.process.kill();
    leave(other);
    const asked = ask();
    await pass(100);
    first.process.kill();
    silence(first);
    await pass(30_000);
    expect(asked.reply).toBeUndefined();
    await serve('c');
    await pass(1_000);
    expect(asked.reply).toEqual({ status: 'returned', raw: 'by c' });
    expect(ran).toEqual(['a', 'c']);
  });

  test('a question that each instance dies of moves three times', async () => {
    const { first, other, silence, serve, ask, ran } = await stage({ timeoutMs: 60_000, takesMs: 50_000 });
    const asked = ask();
    for (const one of [first, other, await serve('c'), await serve('d'), await serve('e')]) {
      await pass(100);
      one.process.kill();
      silence(one);
      await pass(4_000);
    }
    expect(ran).toHaveLength(4);
    expect(asked.reply).toMatchObject({ status: 'failed', code: 'hook_unavailable' });
  });

  test('where every instance has said that it leaves it is unavailable', async () => {
    const { first, other, leave, ask } = await stage();
    for (const one of [first, other]) {
      one.process.kill();
      leave(one);
    }
    const asked = ask();
    await pass(10);
    expect(asked.reply).toMatchObject({ status: 'failed', code: 'hook_unavailable' });
  });

  test.each(['kill', 'freeze'] as const)('a question ends that its host no longer waits for: %s', async (end) => {
    const { first, other, ask } = await stage();
    for (const one of [first, other]) one.process[end]();
    const leaving = new AbortController();
    const asked = ask(leaving.signal);
    await pass(100);
    leaving.abort();
    await pass(10);
    expect(asked.reply).toMatchObject({ status: 'failed', code: 'hook_unavailable' });
    await pass(300);
    // The heartbeats of the two instances remain.
    expect(vi.getTimerCount()).toBe(2);
  });

  test.each([0, 500])('a question outlives the connection of the host, lost after %i ms', async (afterMs) => {
    const { host, ask, ran } = await stage({ takesMs: 1_000 });
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
    const { first, other, silence, hearAgain, ask, ran } = await stage({ takesMs: 500 });
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
});
