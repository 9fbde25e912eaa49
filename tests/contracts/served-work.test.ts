/**
 * The contract of served work, the same for each kind: which instance runs it, when it moves, and what its session gets. Both
 * sides are the real ones, over a bus in memory, on virtual time.
 */
import { BOUNDS, Heartbeat, SERVED_BOUNDS, subjects, type WorkOrder, type WorkRequest } from '@coxswain/protocol';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { askOf, probeOf } from '../../libs/adapters/nats/src/served/tool-outcomes.ts';
import { subjectsOf } from '../../libs/bus/src/served/address.ts';
import { type FakeBus, FakeProcess } from './fake-connection.ts';
import { keyOf, ref, SERVED_KINDS, type ServedKindCase, tenant } from './served-kinds.ts';
import { pair, pass, type StagedInstance, stage, useVirtualTime } from './served-stage.ts';

beforeEach(useVirtualTime);
afterEach(() => void vi.useRealTimers());

const FAILURES: readonly [string, (process: FakeProcess) => void][] = [
  ['frozen', (process) => process.freeze()],
  ['killed', (process) => process.kill()],
];

/** The subjects of the abort orders, each once. */
const abortsOn = ({ sent }: FakeBus) => [
  ...new Set(sent.flatMap(({ subject, body }) => (body.want === 'abort' ? [subject] : []))),
];
const kindsWith = (holds: (kind: ServedKindCase) => boolean) =>
  SERVED_KINDS.filter(holds).map((kind) => [kind.title, kind] as const);
/** Loses one message, the first on this subject. */
const loseFirst = (bus: FakeBus, lost: string) => {
  let isLost = false;
  bus.loses = (subject) => {
    const loses = !isLost && subject === lost;
    isLost ||= loses;
    return loses;
  };
};

describe.each(kindsWith(() => true))('%s', (_title, kind) => {
  const at = subjectsOf(kind.to);

  test('moves within 4 seconds from a frozen instance that has not accepted it', async () => {
    const { first, other, ask, startedBy } = await pair(kind);
    first.process.freeze();
    const asked = ask();
    await pass(4_000);
    expect(startedBy()).toEqual(['b']);
    other.end();
    await pass(10);
    expect(asked.ending).toEqual({ status: 'answered', text: 'by b' });
    // It resumes with the request in its socket. Only a question starts without an order, and without an abort after it.
    first.process.wake();
    await pass(60_000);
    expect(startedBy()).toEqual(kind.isHeld || kind.isStreamed ? ['b'] : ['b', 'a']);
  });

  test.each(FAILURES)(
    'moves within 4 seconds, if it is repeatable, when its instance is %s after the start',
    async (_how, fail) => {
      const { first, other, ask, startedBy } = await pair(kind);
      const asked = ask();
      await pass(100);
      fail(first.process);
      await pass(4_000);
      expect(startedBy()).toEqual(kind.isRepeatable ? ['a', 'b'] : ['a']);
      if (!kind.isRepeatable) return;
      other.end();
      await pass(10);
      expect(asked.ending).toEqual({ status: 'answered', text: 'by b' });
    },
  );

  test('waits for an instance that starts 8 seconds after all others were killed', async () => {
    const { first, other, ask, startedBy, serve } = await pair(kind);
    for (const one of [first, other]) one.process.kill();
    const asked = ask();
    await pass(8_000);
    expect(asked.ending).toBeUndefined();
    const third = await serve('c');
    await pass(1_500);
    expect(startedBy()).toEqual(['c']);
    third.end();
    await pass(10);
    expect(asked.ending?.status).toBe('answered');
  });

  test('waits for an instance whose server returns within the time limit', async () => {
    const { first, other, ask, startedBy } = await pair(kind, { takesMs: 0 });
    for (const one of [first, other]) one.process.disconnect();
    const asked = ask();
    await pass(4_000);
    expect(asked.ending).toBeUndefined();
    first.process.reconnect();
    await pass(1_300);
    expect(asked.ending?.status).toBe('answered');
    expect(startedBy()).toEqual(['a']);
  });

  test('is sent again when the request is lost, starts once, and is aborted nowhere else unless it is streamed', async () => {
    const { bus, first, other, ask, startedBy } = await pair(kind);
    loseFirst(bus, at.requests);
    const asked = ask();
    await pass(4_000);
    expect(startedBy()).toHaveLength(1);
    first.end();
    other.end();
    await pass(10);
    expect(asked.ending?.status).toBe('answered');
    expect(abortsOn(bus)).toEqual(kind.isStreamed ? [at.orders] : []);
  });

  test('is not cancelled by an instance that stops: it moves if it is repeatable, otherwise its outcome is unknown', async () => {
    const { first, other, ask, startedBy } = await pair(kind);
    const asked = ask();
    await pass(100);
    void first.serving.stop();
    await pass(4_000);
    other.end();
    await pass(10);
    expect(startedBy()).toEqual(kind.isRepeatable ? ['a', 'b'] : ['a']);
    expect(asked.ending).toEqual(
      kind.isRepeatable
        ? { status: 'answered', text: 'by b' }
        : { status: 'lost', text: 'its process is stopping', moves: 0 },
    );
  });

  test('runs once, however long it takes, while its instance is alive', async () => {
    const { ask, startedBy } = await pair(kind, { takesMs: 50_000 });
    const asked = ask();
    await pass(50_100);
    expect(asked.ending).toEqual({ status: 'answered', text: 'by a' });
    expect(startedBy()).toEqual(['a']);
  });

  test('runs once on an instance that is alive and whose heartbeats the host has not received yet', async () => {
    const { ask, startedBy } = await pair(kind, { takesMs: 20_000, isDeaf: true });
    const asked = ask();
    await pass(20_100);
    expect(asked.ending).toEqual({ status: 'answered', text: 'by a' });
    expect(startedBy()).toEqual(['a']);
  });

  test.each([0, 500])('survives a connection loss of the host, %i ms after it was sent', async (afterMs) => {
    const { host, ask, startedBy } = await pair(kind, { takesMs: 1_000 });
    if (afterMs === 0) host.disconnect();
    const asked = ask();
    await pass(afterMs);
    if (afterMs > 0) host.disconnect();
    await pass(30_000);
    expect(asked.ending).toBeUndefined();
    host.reconnect();
    await pass(1_600);
    expect(asked.ending?.status).toBe('answered');
    expect(startedBy()).toHaveLength(afterMs > 0 && !kind.keepsAnswers ? 2 : 1);
  });

  test.each([2_000, 30_000])('continues on its instance when its host is suspended for %i ms', async (frozenMs) => {
    const { host, first, ask, startedBy } = await pair(kind);
    const asked = ask();
    await pass(500);
    host.freeze();
    await pass(frozenMs);
    host.wake();
    await pass(1_000);
    expect(asked.ending).toBeUndefined();
    first.end();
    await pass(1_000);
    expect(asked.ending).toEqual({ status: 'answered', text: 'by a' });
    expect(startedBy()).toEqual(['a']);
  });

  test('continues on its instance when the host returns to a restarted server first', async () => {
    const { host, first, other, ask, startedBy } = await pair(kind, { takesMs: 5_000 });
    const asked = ask();
    await pass(500);
    for (const one of [host, first.process, other.process]) one.disconnect();
    await pass(2_000);
    host.reconnect();
    await pass(200);
    for (const one of [first, other]) one.process.reconnect();
    await pass(6_000);
    expect(asked.ending).toEqual({ status: 'answered', text: 'by a' });
    expect(startedBy()).toEqual(['a']);
  });

  test('is answered again within 6 seconds by an instance that lost its connection with the answer', async () => {
    const { first, other, ask, startedBy } = await pair(kind, { takesMs: 500 });
    other.process.kill();
    const asked = ask();
    await pass(100);
    first.process.disconnect();
    await pass(700);
    first.process.reconnect();
    await pass(6_000);
    expect(asked.ending).toEqual({ status: 'answered', text: 'by a' });
    expect(startedBy()).toEqual(kind.keepsAnswers ? ['a'] : ['a', 'a']);
  });

  test('is not ended by the late refusal of an instance that never accepted it', async () => {
    const { bus, ask, startedBy, serve } = stage(kind);
    const first = await serve('a');
    await pass(1_000);
    for (let i = 0; i < SERVED_BOUNDS.requestsAtOnceMax; i++) ask({ effect: `9-${i}` });
    const other = await serve('b');
    await pass(1_000);
    const before = startedBy().length;
    bus.next = 0;
    first.process.freeze();
    const asked = ask();
    await pass(2_000);
    expect(startedBy().slice(before)).toEqual(['b']);
    first.process.wake();
    await pass(1_000);
    expect(asked.ending).toBeUndefined();
    other.end();
    await pass(10);
    expect(asked.ending).toEqual({ status: 'answered', text: 'by b' });
  });

  test('moves within 4 seconds although a forger refuses it in the names of many instances', async () => {
    const { bus, first, ask, startedBy } = await pair(kind);
    const forger = new FakeProcess(bus);
    forger.nc.subscribe(at.requests, {
      callback(_error, { reply = '', ...message }) {
        const { key } = message.json<WorkRequest>();
        let forged = 0;
        const refuse = () => {
          const report = {
            v: 1,
            key,
            instance: `x${forged++}`,
            type: 'refused',
            code: 'tool_unavailable',
            message: '',
          };
          forger.nc.publish(reply, JSON.stringify(report));
          if (forged < 50) forger.after(100, refuse);
        };
        refuse();
      },
    });
    first.process.freeze();
    ask();
    await pass(4_000);
    expect(startedBy()).toEqual(['b']);
  });

  test('is aborted on every instance that it was sent to, and only there', async () => {
    const { bus, other, ask, startedBy } = await pair(kind);
    const cancel = new AbortController();
    const alone = ask({ signal: cancel.signal });
    await pass(100);
    cancel.abort('wrong one');
    await pass(10);
    expect(alone.ending?.status).toBe(kind.cancelled);
    expect(abortsOn(bus)).toEqual([at.orderTo('a')]);

    other.process.freeze();
    const next = new AbortController();
    const asked = ask({ signal: next.signal, effect: '4-0' });
    await pass(2_000);
    expect(startedBy()).toEqual(['a', 'a']);
    next.abort('wrong again');
    await pass(10);
    expect(asked.ending?.status).toBe(kind.cancelled);
    expect(abortsOn(bus).slice(1)).toEqual([at.orders]);
    other.process.wake();
    await pass(60_000);
    expect(startedBy()).toEqual(kind.isHeld || kind.isStreamed ? ['a', 'a'] : ['a', 'a', 'b']);
  });

  test('starts at most as often as its traits allow when every instance dies of it', async () => {
    const { asked, startedBy } = await sendToEach((one) => one.process.kill());
    expect(startedBy()).toHaveLength(kind.startsMax);
    expect(asked.ending?.status).toBe(kind.exhausted);
    if (kind.isHeld && kind.isRepeatable) expect(asked.ending?.moves).toBe(kind.startsMax - 1);
  });

  test('starts at most as often as its traits allow when every instance stops with it', async () => {
    const { asked, startedBy } = await sendToEach((one) => void one.serving.stop());
    expect(startedBy()).toHaveLength(kind.startsMax);
    expect(asked.ending?.status).toBe(kind.exhausted);
    if (kind.isHeld) expect(asked.ending?.text).toBe('its process is stopping');
  });

  /** Ends one instance after another, each after the start of the next one. */
  async function sendToEach(end: (one: StagedInstance) => void) {
    const { ask, startedBy, serve } = stage(kind);
    let one = await serve('i0');
    await pass(1_000);
    const asked = ask();
    await pass(100);
    for (let i = 1; i < 15 && !asked.ending; i++) {
      const next = await serve(`i${i}`);
      await pass(400);
      end(one);
      one = next;
      await pass(6_000);
    }
    return { asked, startedBy };
  }

  test.each(FAILURES)('leaves no timer behind after a cancel while every instance is %s', async (_how, fail) => {
    const { first, other, ask } = await pair(kind);
    for (const one of [first, other]) fail(one.process);
    const cancel = new AbortController();
    const asked = ask({ signal: cancel.signal });
    await pass(100);
    cancel.abort();
    // A frozen instance may still run a step, which has a grace to stop.
    await pass(kind.isStreamed ? 2 * BOUNDS.abortGraceMs + 500 : 10);
    expect(asked.ending?.status).toBe(kind.cancelled);
    await pass(300);
    // The heartbeats of the two instances.
    expect(vi.getTimerCount()).toBe(2);
  });
});

describe.each(kindsWith(({ isHeld }) => isHeld))('%s starts at an order:', (_title, kind) => {
  test('without one, nothing starts after the call has ended as unaccepted and its instances resume', async () => {
    const { first, other, ask, startedBy } = await pair(kind);
    for (const one of [first, other]) one.process.freeze();
    const asked = ask();
    await pass(16_000);
    expect(asked.ending?.status).toBe('unavailable');
    for (const one of [first, other]) one.process.wake();
    await pass(60_000);
    expect(startedBy()).toEqual([]);
  });

  test('a frozen instance that finds the order after 3 seconds starts nothing', async () => {
    const { bus, first, ask, startedBy } = await pair(kind);
    // It freezes between its acceptance and the order.
    bus.loses = (subject) => {
      if (subject.startsWith('_INBOX') && startedBy().length === 0) first.process.freeze();
      return false;
    };
    const asked = ask();
    await pass(4_000);
    expect(startedBy()).toEqual(kind.isRepeatable ? ['b'] : []);
    first.process.wake();
    await pass(1_000);
    expect(startedBy()).toEqual(['b']);
    expect(asked.ending).toBeUndefined();
  });

  test('a frozen instance that finds the order and its abort starts nothing', async () => {
    const { bus, first, ask, startedBy } = await pair(kind);
    bus.loses = (subject) => {
      if (subject.startsWith('_INBOX')) first.process.freeze();
      return false;
    };
    const cancel = new AbortController();
    const asked = ask({ signal: cancel.signal });
    await pass(1_000);
    cancel.abort();
    await pass(1_000);
    first.process.wake();
    await pass(100);
    expect(asked.ending?.status).toBe('cancelled');
    await pass(60_000);
    expect(startedBy()).toEqual([]);
  });

  test('a copy that was aborted before its start does not end the call of another instance', async () => {
    const { first, other, ask, startedBy } = await pair(kind);
    first.process.freeze();
    const cancel = new AbortController();
    const asked = ask({ signal: cancel.signal });
    await pass(2_000);
    // It ends in spite of the abort.
    const isStarted = startedBy();
    other.ignoreAborts();
    cancel.abort();
    await pass(500);
    first.process.wake();
    await pass(500);
    other.end();
    await pass(100);
    expect([isStarted, asked.ending]).toEqual([['b'], { status: 'answered', text: 'by b' }]);
  });

  test('an order that is lost on its way is repeated within 2 seconds', async () => {
    const { bus, ask, startedBy } = await pair(kind);
    loseFirst(bus, subjectsOf(kind.to).orderTo('a'));
    ask();
    await pass(2_000);
    expect(startedBy()).toEqual(['a']);
  });

  test('an order that no process receives leaves the call to another instance', async () => {
    const { bus, first, other, ask, startedBy } = await pair(kind);
    const asked = ask();
    // It dies between its acceptance and the order.
    bus.loses = (subject) => {
      if (subject.startsWith('_INBOX')) first.process.kill();
      return false;
    };
    await pass(3_000);
    expect(startedBy()).toEqual(['b']);
    other.end();
    await pass(10);
    expect(asked.ending?.status).toBe('answered');
  });

  test('a call that is cancelled before the order never starts', async () => {
    const { first, other, ask, startedBy } = await pair(kind);
    for (const one of [first, other]) one.process.freeze();
    const cancel = new AbortController();
    const asked = ask({ signal: cancel.signal });
    await pass(500);
    cancel.abort('wrong one');
    await pass(10);
    expect(asked.ending?.status).toBe('cancelled');
    for (const one of [first, other]) one.process.wake();
    await pass(5_000);
    expect(startedBy()).toEqual([]);
  });

  test('a call that no instance accepts ends after 15 seconds, and at once when every instance has left', async () => {
    const { first, other, ask } = await pair(kind);
    for (const one of [first, other]) one.process.freeze();
    const asked = ask();
    await pass(14_000);
    expect(asked.ending).toBeUndefined();
    await pass(2_000);
    expect(asked.ending?.status).toBe('unavailable');
    for (const one of [first, other]) one.process.wake();
    for (const one of [first, other]) void one.serving.stop();
    await pass(10);
    const again = ask({ effect: '4-0' });
    await pass(10);
    expect(again.ending?.status).toBe('unavailable');
  });

  test('the next owner of the session waits 5 seconds for a silent instance, then knows that no instance has the call', async () => {
    const { first, asking, ask } = await pair(kind);
    const probe = async () => {
      const probed = asking.probe({ key: keyOf('3-0'), ref, to: kind.to, epoch: 2 });
      await pass(3_000);
      return probeOf(await probed, (call) => askOf(call, kind.to));
    };
    ask();
    await pass(10);
    first.process.freeze();
    await pass(4_000);
    // A repeatable call runs on the other instance by now.
    expect((await probe()).state).toBe(kind.isRepeatable ? 'running' : 'silent');
    if (kind.isRepeatable) return;
    expect(await probe()).toEqual({ state: 'unknown' });
  });

  test('a forged refusal does not end the search of the next owner of the session', async () => {
    const { bus, asking, ask, serve } = stage(kind);
    const forger = new FakeProcess(bus);
    forger.nc.subscribe(subjectsOf(kind.to).orders, {
      callback(_error, { reply, ...message }) {
        const { key } = message.json<WorkOrder>();
        const report = { v: 1, key, instance: 'x', type: 'refused', code: 'tool_unavailable', message: '' };
        if (reply !== undefined) forger.nc.publish(reply, JSON.stringify(report));
      },
    });
    const { process } = await serve('a');
    await pass(1_000);
    ask();
    await pass(10);
    process.freeze();
    setTimeout(() => process.wake(), 500);
    const probed = asking.probe({ key: keyOf('3-0'), ref, to: kind.to, epoch: 2 });
    await pass(2_000);
    expect((await probed).state).toBe('running');
  });

  test('a cancel by the next owner of the session reaches instances that only the previous owner has used', async () => {
    const { bus, asking, ask } = await pair(kind);
    ask();
    await pass(10);
    const probed = asking.probe({ key: keyOf('3-0'), ref, to: kind.to, epoch: 2 });
    await pass(2_000);
    const known = await probed;
    if (known.state !== 'running') throw new Error(`it is ${known.state}`);
    const cancel = new AbortController();
    const call = {
      idempotencyKey: keyOf('3-0'),
      ref,
      callId: 'c',
      tool: 'stock',
      args: {},
      epoch: 2,
      onProgress: () => undefined,
      onFeedback: () => undefined,
    };
    void known.attach(askOf(call, kind.to, kind.member.tool), cancel.signal);
    cancel.abort('wrong one');
    await pass(10);
    expect(abortsOn(bus)).toEqual([subjectsOf(kind.to).orders]);
  });
});

test.each(kindsWith(({ isHeld, isRepeatable }) => isHeld && isRepeatable))(
  '%s has an unknown outcome if it is cancelled after a move',
  async (_title, kind) => {
    for (const isAccepted of [true, false]) {
      const { first, other, ask, startedBy } = await pair(kind);
      const cancel = new AbortController();
      const asked = ask({ signal: cancel.signal });
      await pass(100);
      first.process.kill();
      if (!isAccepted) other.process.freeze();
      await pass(4_500);
      cancel.abort();
      await pass(100);
      expect([startedBy(), asked.ending?.status]).toEqual([isAccepted ? ['a', 'b'] : ['a'], 'lost']);
    }
  },
);

test.each(kindsWith(({ isRepeatable }) => !isRepeatable))(
  '%s is lost within 5 seconds when its instance is killed, and within 6 seconds when it is frozen',
  async (_title, kind) => {
    const killed = await pair(kind);
    const gone = killed.ask();
    await pass(10);
    killed.first.process.kill();
    await pass(5_000);
    expect(gone.ending).toEqual({ status: 'lost', text: 'the process that ran this call ended', moves: 0 });

    const frozen = await pair(kind);
    const silent = frozen.ask();
    await pass(10);
    frozen.first.process.freeze();
    await pass(4_500);
    expect(silent.ending).toBeUndefined();
    await pass(1_500);
    const text = 'the process that runs this call did not answer for 5 seconds';
    expect(silent.ending).toEqual({ status: 'lost', text, moves: 0 });
    expect([killed.startedBy(), frozen.startedBy()]).toEqual([['a'], ['a']]);
  },
);

test.each(kindsWith(({ isRepeatable, isStreamed }) => isRepeatable && !isStreamed))(
  '%s waits for its frozen instance while no other one is alive, and ends with its answer',
  async (_title, kind) => {
    const { first, other, ask, startedBy } = await pair(kind);
    const asked = ask();
    await pass(100);
    for (const one of [first, other]) one.process.freeze();
    await pass(10_000);
    expect(asked.ending).toBeUndefined();
    for (const one of [first, other]) one.process.wake();
    first.end();
    await pass(1_000);
    expect(asked.ending).toEqual({ status: 'answered', text: 'by a' });
    expect(startedBy()).toEqual(['a']);
  },
);

test.each(kindsWith(({ isStreamed }) => isStreamed))(
  '%s that ended before its host knew of its start is answered by its only instance',
  async (_title, kind) => {
    const { host, ask, startedBy, serve } = stage(kind, { hopMs: 50, takesMs: 500 });
    await serve('a');
    await pass(1_000);
    const asked = ask();
    await pass(60);
    host.disconnect();
    await pass(1_000);
    host.reconnect();
    await pass(1_500);
    expect(asked.ending).toEqual({ status: 'answered', text: 'by a' });
    expect(startedBy()).toEqual(['a']);
  },
);

describe.each(kindsWith(({ member }) => member.hook !== undefined))('%s', (_title, kind) => {
  test.each([5_000, 2_000])(
    'leaves time for another instance within its time limit of %i ms',
    async (hookTimeoutMs) => {
      const before = await pair(kind, { hookTimeoutMs, takesMs: 0 });
      before.first.process.freeze();
      await pass(900);
      const unaccepted = before.ask();
      await pass(hookTimeoutMs / 2);
      expect(unaccepted.ending).toEqual({ status: 'answered', text: 'by b' });

      const after = await pair(kind, { hookTimeoutMs, takesMs: 100 });
      const accepted = after.ask();
      await pass(50);
      after.first.process.freeze();
      await pass(0.6 * hookTimeoutMs);
      expect(accepted.ending).toEqual({ status: 'answered', text: 'by b' });
    },
  );

  test('waits as long as its host does for the next instance', async () => {
    const { first, other, ask, startedBy, serve } = await pair(kind, { takesMs: 500 });
    void other.serving.stop();
    await pass(10);
    const asked = ask();
    await pass(100);
    first.process.kill();
    await pass(30_000);
    expect(asked.ending).toBeUndefined();
    await serve('c');
    await pass(2_000);
    expect(asked.ending).toEqual({ status: 'answered', text: 'by c' });
    expect(startedBy()).toEqual(['a', 'c']);
  });

  test('is unavailable at once when every instance has left', async () => {
    const { first, other, ask } = await pair(kind);
    for (const one of [first, other]) void one.serving.stop();
    await pass(10);
    const asked = ask();
    await pass(10);
    expect(asked.ending?.status).toBe('unavailable');
  });
});

const [aCall] = SERVED_KINDS as [ServedKindCase];

test('a call whose outcome is invalid ends as an error, and not when its instance ends', async () => {
  const { bus, asking } = stage(aCall);
  const at = subjectsOf(aCall.to);
  const instance = new FakeProcess(bus);
  const report = (reply: string | undefined, key: string, what: object) =>
    instance.nc.publish(reply ?? '', JSON.stringify({ v: 1, key, instance: 'x', ...what }));
  instance.nc.subscribe(at.requests, {
    callback(_error, { reply, ...message }) {
      const { key, hold } = message.json<WorkRequest>();
      report(reply, key, { type: 'ready', hold });
    },
  });
  instance.nc.subscribe(at.orderTo('x'), {
    callback(_error, { reply, ...message }) {
      const { key } = message.json<WorkOrder>();
      report(reply, key, { type: 'running' });
      report(reply, key, { type: 'ended', status: 'ok', result: 'no result' });
    },
  });
  const call = {
    idempotencyKey: keyOf('3-0'),
    ref,
    callId: 'c',
    tool: 'stock',
    args: {},
    epoch: 1,
    onProgress: () => undefined,
    onFeedback: () => undefined,
  };
  const ending = asking.ask(askOf(call, aCall.to), new AbortController().signal);
  await pass(100);
  const text = 'the process that ran this call sent an invalid outcome';
  expect(await ending).toMatchObject({ type: 'ended', status: 'error', result: { content: [{ text }] } });
});

test('an instance that has abandoned its work does not return with a stop', async () => {
  const { host, first } = await pair(aCall, { takesMs: 60_000 });
  const states: string[] = [];
  host.nc.subscribe(subjects.heartbeat('tools', tenant, aCall.to.name, 'a'), {
    callback: (_error, message) => void states.push(Heartbeat.parse(message.json()).state),
  });
  first.serving.abandon();
  await first.serving.stop();
  await pass(2_000);
  expect(states).toEqual(['gone']);
});

describe('an instance without a connection', () => {
  test('stops within its time limit, and says that hosts do not know it', async () => {
    const { first } = await pair(aCall);
    first.process.disconnect();
    let failure: Error | undefined;
    first.serving.stop().catch((error: Error) => {
      failure = error;
    });
    await pass(5_000);
    expect(failure).toMatchObject({ code: 'nats_unreachable' });
  });

  test('that is to serve does so when the connection is restored', async () => {
    const { first, other, ask } = await pair(aCall, { takesMs: 0 });
    other.process.kill();
    await first.serving.setServing(false);
    first.process.disconnect();
    let isServing = false;
    void first.serving.setServing(true).then(() => {
      isServing = true;
    });
    await pass(5_000);
    expect(isServing).toBe(true);
    first.process.reconnect();
    const asked = ask();
    await pass(2_000);
    expect(asked.ending).toEqual({ status: 'answered', text: 'by a' });
  });
});
