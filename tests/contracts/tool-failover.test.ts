/**
 * Fail-over between instances of a bus tool: the host's calls and the instances' ledgers as they are, between them a bus in
 * memory, and time that the test moves on.
 */

import {
  createAsking,
  type Instances,
  RunningWork,
  type ServedAddress,
  type ServingWork,
  serveWork,
} from '@coxswain/bus';
import type { ToolCall, ToolOutcome } from '@coxswain/ports';
import { SERVED_BOUNDS, SERVED_LIVENESS, SessionId, sessionRef, subjects, TenantId } from '@coxswain/protocol';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { askOf, outcomeOf, probeOf } from '../../libs/adapters/nats/src/served/tool-outcomes.ts';
import { checkTool } from '../../libs/client/src/define-tool.ts';
import { FakeBus, FakeProcess } from './fake-connection.ts';

const tenant = TenantId.parse('default');
const ref = sessionRef(SessionId.parse('s1'), tenant);
const name = 'stock';
const to: ServedAddress = { kind: 'tools', tenant, name };

beforeEach(
  () =>
    void vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'Date'],
    }),
);
afterEach(() => void vi.useRealTimers());

const sentCall: ToolCall = {
  idempotencyKey: 'default.s1.3-0',
  ref,
  callId: 'c1',
  tool: name,
  args: {},
  epoch: 1,
  onProgress: () => undefined,
  onFeedback: () => undefined,
};

interface Instance {
  readonly id: string;
  readonly process: FakeProcess;
  readonly serving: ServingWork;
  /** Ends its oldest open call. */
  end(): void;
}

/** A bus with instances of one tool, and a host that calls it. */
async function stage() {
  const bus = new FakeBus();
  const host = new FakeProcess(bus);
  const heardMs = new Map<string, number>();
  /** Which instances have started the call, in order. */
  const runs: string[] = [];
  const isSilent = (id: string) => performance.now() - (heardMs.get(id) ?? 0) >= SERVED_LIVENESS.ttlMs;
  const presence: Instances = {
    isServed: () => [...heardMs.keys()].some((id) => !isSilent(id)),
    serving: () =>
      [...heardMs.keys()].filter((id) => !isSilent(id)).sort((a, b) => (heardMs.get(b) ?? 0) - (heardMs.get(a) ?? 0)),
    living: () => [...heardMs.keys()].filter((id) => !isSilent(id)),
    silent: () => [...heardMs.keys()].filter(isSilent),
    forget: (_of, id) => void heardMs.delete(id),
    silentMs: (_of, id) => performance.now() - (heardMs.get(id) ?? Number.NEGATIVE_INFINITY),
    listenedMs: () => performance.now(),
  };
  host.nc.subscribe(`${subjects.heartbeat('tools', tenant, name, 'x').slice(0, -1)}*`, {
    callback(_error, message) {
      const id = message.subject.split('.').at(-1) as string;
      if (message.json<{ state: string }>().state === 'gone') heardMs.delete(id);
      else heardMs.set(id, performance.now());
    },
  });
  const asking = createAsking(host.nc, presence, () => undefined);

  async function serve(id: string): Promise<Instance> {
    const process = new FakeProcess(bus);
    const open: (() => void)[] = [];
    const tool = await checkTool({
      name,
      description: '',
      inputSchema: { type: 'object' },
      execute: (_args: unknown, { abortSignal: signal }: { abortSignal: AbortSignal }) => {
        runs.push(id);
        return new Promise((resolve, reject) => {
          open.push(() => resolve(`by ${id}`));
          signal.addEventListener('abort', () => reject(signal.reason));
        });
      },
    });
    const serving = await serveWork(process.nc, {
      at: to,
      instance: id,
      work: new RunningWork(() => tool, { tenant }),
      heartbeat: () => ({}),
      announce: async () => undefined,
      problem: () => undefined,
      drainMs: 0,
    });
    return { id, process, serving, end: () => open.shift()?.() };
  }

  return {
    bus,
    runs,
    serve,
    presence,
    /** Calls it, and says how it ended, or that it has not. */
    call(isIdempotent: boolean, signal = new AbortController().signal, effect = '3-0') {
      const state: { outcome?: ToolOutcome } = {};
      const idempotencyKey = `default.s1.${effect}`;
      void asking.ask(askOf({ ...sentCall, idempotencyKey, isIdempotent }, to), signal).then((end) => {
        state.outcome = outcomeOf(end);
      });
      return state;
    },
    probe: async () =>
      probeOf(await asking.probe({ key: 'default.s1.3-0', ref, to, epoch: 2 }), (call) => askOf(call, to)),
  };
}

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
const textOf = ({ outcome }: { outcome?: ToolOutcome }) =>
  (outcome?.result.content[0] as { text: string } | undefined)?.text;

const abortsOn = ({ sent }: FakeBus) => sent.flatMap(({ subject, body }) => (body.want === 'abort' ? [subject] : []));

/** Serves two, so that the first call goes to the first one. */
async function pair() {
  const on = await stage();
  const [first, other] = [await on.serve('a'), await on.serve('b')];
  await pass(1_000);
  return { ...on, first, other };
}

test.each([true, false])(
  'a call that a frozen instance never took moves within 4 s, idempotent: %s, and runs once',
  async (is) => {
    const { first, other, call, runs } = await pair();
    first.process.freeze();
    const called = call(is);
    await pass(4_000);
    expect(runs).toEqual(['b']);
    other.end();
    await pass(10);
    expect(called).toMatchObject({ outcome: { status: 'ok', result: { content: [{ text: 'by b' }] } } });
    // It wakes up with the call in its socket, and no order to begin ever comes.
    first.process.wake();
    await pass(60_000);
    expect(runs).toEqual(['b']);
  },
);

test.each([true, false])(
  'a call that ended because no instance took it runs nowhere when a frozen instance wakes up, idempotent: %s',
  async (is) => {
    const { first, other, call, runs } = await pair();
    for (const one of [first, other]) one.process.freeze();
    const called = call(is);
    await pass(16_000);
    expect(called.outcome?.status).toBe('unavailable');
    for (const one of [first, other]) one.process.wake();
    await pass(60_000);
    expect(runs).toEqual([]);
  },
);

test('an order to begin that a frozen instance finds after the call has moved begins nothing', async () => {
  const { bus, first, other, call, runs } = await pair();
  // It freezes between its answer and the order.
  bus.loses = (subject) => {
    if (subject.startsWith('_INBOX') && runs.length === 0) first.process.freeze();
    return false;
  };
  const called = call(true);
  await pass(4_000);
  expect(runs).toEqual(['b']);
  other.end();
  await pass(10);
  expect(called.outcome?.status).toBe('ok');
  first.process.wake();
  await pass(60_000);
  expect(runs).toEqual(['b']);
});

test.each<[string, (process: FakeProcess) => void]>([
  ['froze after it had taken it', (process) => process.freeze()],
  ['was killed', (process) => process.kill()],
])('an idempotent call moves within 4 s from an instance that %s', async (_how, end) => {
  const { first, other, call, runs } = await pair();
  const called = call(true);
  await pass(10);
  end(first.process);
  await pass(4_000);
  expect(runs).toEqual(['a', 'b']);
  other.end();
  await pass(10);
  expect(called.outcome?.status).toBe('ok');
  expect(textOf(called)).toBe('by b');
});

test('an idempotent call of a frozen instance is waited for where no other one lives, and ends with its answer', async () => {
  const { first, other, call, runs } = await pair();
  const called = call(true);
  await pass(10);
  for (const one of [first, other]) one.process.freeze();
  await pass(10_000);
  expect(called.outcome).toBeUndefined();
  for (const one of [first, other]) one.process.wake();
  first.end();
  await pass(1_000);
  expect(textOf(called)).toBe('by a');
  expect(runs).toEqual(['a']);
});

test('any other call is lost when its instance was killed, and after 15 s when it is frozen; it runs nowhere else', async () => {
  const killed = await pair();
  const gone = killed.call(false);
  await pass(10);
  killed.first.process.kill();
  await pass(5_000);
  expect(gone.outcome?.status).toBe('lost');
  expect(textOf(gone)).toBe('the process that ran this call ended');

  const frozen = await pair();
  const silent = frozen.call(false);
  await pass(10);
  frozen.first.process.freeze();
  await pass(14_000);
  expect(silent.outcome).toBeUndefined();
  await pass(3_000);
  expect(silent.outcome?.status).toBe('lost');
  expect(textOf(silent)).toBe('the process that runs this call did not answer for 15 seconds');
  expect([killed.runs, frozen.runs]).toEqual([['a'], ['a']]);
});

test.each([true, false])(
  'the first “no responders” is not final: an instance that is there within 15 s has the call, idempotent: %s',
  async (is) => {
    const { first, other, call, runs, serve } = await pair();
    for (const one of [first, other]) one.process.kill();
    const called = call(is);
    await pass(8_000);
    expect(called.outcome).toBeUndefined();
    const third = await serve('c');
    await pass(1_500);
    expect(runs).toEqual(['c']);
    third.end();
    await pass(10);
    expect(called.outcome?.status).toBe('ok');
  },
);

test('a call that no instance takes ends after 15 s as unavailable, and at once where every instance has said that it leaves', async () => {
  const { first, other, call, presence } = await pair();
  first.process.kill();
  other.process.kill();
  const called = call(false);
  await pass(14_000);
  expect(called.outcome).toBeUndefined();
  await pass(2_000);
  expect(called.outcome).toMatchObject({ status: 'unavailable', result: { detail: { code: 'tool_unavailable' } } });
  for (const id of ['a', 'b']) presence.forget(to, id);
  const again = call(false);
  await pass(10);
  expect(again.outcome?.status).toBe('unavailable');
});

test.each([true, false])(
  'a request that is lost on its way is sent again, and no other instance has an order to refuse it, idempotent: %s',
  async (is) => {
    const { bus, first, other, call, runs } = await pair();
    bus.loses = (subject) => subject === subjects.tool(tenant, name);
    const called = call(is);
    await pass(4_000);
    expect(runs).toHaveLength(1);
    first.end();
    other.end();
    await pass(10);
    expect(called.outcome?.status).toBe('ok');
    expect(bus.sent.filter(({ body }) => body.want === 'abort')).toEqual([]);
  },
);

test('an order to begin that finds no process leaves the call to another instance', async () => {
  const { bus, first, other, call, runs } = await pair();
  const called = call(false);
  // It dies between its answer and the order.
  bus.loses = (subject) => {
    if (subject === subjects.orderTo(subjects.tool(tenant, name), 'a')) return false;
    if (subject.startsWith('_INBOX')) first.process.kill();
    return false;
  };
  await pass(3_000);
  expect(runs).toEqual(['b']);
  other.end();
  await pass(10);
  expect(called.outcome?.status).toBe('ok');
});

test('an instance that stops a call as it ends has not cancelled it: idempotent, it moves; else its outcome is unknown', async () => {
  const moved = await pair();
  const again = moved.call(true);
  await pass(10);
  void moved.first.serving.stop();
  await pass(4_000);
  moved.other.end();
  await pass(10);
  expect(again.outcome?.status).toBe('ok');
  const kept = await pair();
  const once = kept.call(false);
  await pass(10);
  void kept.first.serving.stop();
  await pass(4_000);
  expect(once.outcome?.status).toBe('lost');
  expect(textOf(once)).toBe('its process is stopping');
  expect(kept.runs).toEqual(['a']);
});

test('a held call is cancelled before it began, and never begins', async () => {
  const { first, other, call, runs } = await pair();
  for (const one of [first, other]) one.process.freeze();
  const stop = new AbortController();
  const called = call(false, stop.signal);
  await pass(500);
  stop.abort('wrong one');
  await pass(10);
  expect(called.outcome).toMatchObject({ status: 'cancelled' });
  for (const one of [first, other]) one.process.wake();
  await pass(5_000);
  expect(runs).toEqual([]);
});

test('a cancel reaches every instance that was sent the call, and only those', async () => {
  const { bus, other, call, runs } = await pair();
  const stop = new AbortController();
  const alone = call(true, stop.signal);
  await pass(10);
  stop.abort('wrong one');
  await pass(10);
  expect(alone.outcome?.status).toBe('cancelled');
  expect(abortsOn(bus)).toEqual([subjects.orderTo(subjects.tool(tenant, name), 'a')]);

  other.process.freeze();
  const again = new AbortController();
  const called = call(true, again.signal, '4-0');
  await pass(2_000);
  expect(runs).toEqual(['a', 'a']);
  again.abort('wrong again');
  await pass(10);
  expect(called.outcome?.status).toBe('cancelled');
  expect(abortsOn(bus).slice(1)).toEqual([subjects.orders(subjects.tool(tenant, name))]);
  other.process.wake();
  await pass(60_000);
  expect(runs).toEqual(['a', 'a']);
});

test('a cancel by a later owner reaches instances that only the owner before knows of', async () => {
  const { bus, first, call, probe } = await pair();
  call(true);
  await pass(10);
  first.process.freeze();
  await pass(4_000);
  const [known] = await Promise.all([probe(), pass(2_000)]);
  if (known.state !== 'running') throw new Error(`it is ${known.state}`);
  const stop = new AbortController();
  void known.attach({ ...sentCall, isIdempotent: true, epoch: 2 }, stop.signal);
  stop.abort('wrong one');
  await pass(10);
  expect(abortsOn(bus)[0]).toBe(subjects.orders(subjects.tool(tenant, name)));
});

test('a late refusal by an instance that never took the call does not end it', async () => {
  const { bus, first, other, call, runs } = await pair();
  const filler = { v: 1, session_id: 's1', epoch: 1, call_id: 'x', hold: 1, args: {} };
  const fill = (key: string) => JSON.stringify({ ...filler, key });
  for (let i = 0; i < SERVED_BOUNDS.requestsAtOnceMax; i++)
    bus.connect(first.process).publish(subjects.requestTo(subjects.tool(tenant, name), 'a'), fill(`default.s1.9-${i}`));
  await pass(10);
  first.process.freeze();
  const called = call(false);
  await pass(2_000);
  expect(runs).toEqual(['b']);
  first.process.wake();
  await pass(100);
  expect(called.outcome).toBeUndefined();
  other.end();
  await pass(10);
  expect(textOf(called)).toBe('by b');
});

test('an idempotent call that kills each process that runs it moves three times, then it is lost', async () => {
  const { call, runs, serve } = await stage();
  let one = await serve('i0');
  await pass(1_000);
  const called = call(true);
  await pass(50);
  for (let i = 1; i < 8 && !called.outcome; i++) {
    const next = await serve(`i${i}`);
    await pass(400);
    one.process.kill();
    one = next;
    await pass(6_000);
  }
  expect(runs).toEqual(['i0', 'i1', 'i2', 'i3']);
  expect(called.outcome).toMatchObject({ status: 'lost', moves: 3 });
});

test('an idempotent call that each instance gives up as it ends moves three times, then it is lost', async () => {
  const { call, runs, serve } = await stage();
  let one = await serve('i0');
  await pass(1_000);
  const called = call(true);
  await pass(50);
  for (let i = 1; i < 8 && !called.outcome; i++) {
    const next = await serve(`i${i}`);
    await pass(400);
    void one.serving.stop();
    one = next;
    await pass(6_000);
  }
  expect(runs).toEqual(['i0', 'i1', 'i2', 'i3']);
  expect(called.outcome).toMatchObject({ status: 'lost', moves: 3 });
  expect(textOf(called)).toBe('its process is stopping');
});

test('an owner that takes over asks a silent instance for 15 s, then knows that no instance has the call', async () => {
  const { first, call, probe } = await pair();
  call(false);
  await pass(10);
  first.process.freeze();
  await pass(4_000);
  const early = probe();
  await pass(3_000);
  expect(await early).toEqual({ state: 'silent' });
  await pass(10_000);
  const late = probe();
  await pass(3_000);
  expect(await late).toEqual({ state: 'unknown' });
});
