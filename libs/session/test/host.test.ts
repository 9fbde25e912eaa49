/**
 * The host: claims, stopping in order, and continuing when one session cannot. RUNNER-10.
 */
import type { CommandInbox, Journal, ToolCall, ToolOutcome } from '@coxswain/ports';
import { expect, test } from 'vitest';
import { createSessionHost } from '../src/mod.ts';
import { ask, call, say } from './fake-model.ts';
import { answer, deaf, type FakeTool, taking } from './fake-tools.ts';
import { ASKING, recordOf, refOf, type TestBed, testBed } from './test-bed.ts';

/** A journal with a fault in one session. */
function brokenFor(bed: TestBed, session: string, broken: Partial<Journal>): Journal {
  const pick = <K extends keyof Journal>(name: K): Journal[K] =>
    ((...args: unknown[]) => {
      const isIt = (args[0] as { sessionId?: string }).sessionId === session;
      const from = isIt && broken[name] ? broken : bed.journal;
      return (from[name] as (...all: unknown[]) => unknown).apply(from, args);
    }) as Journal[K];
  return {
    append: pick('append'),
    firstAfter: pick('firstAfter'),
    last: pick('last'),
    read: pick('read'),
    sessions: (tenant) => bed.journal.sessions(tenant),
    sessionsOf: (partition) => bed.journal.sessionsOf(partition),
  };
}

test('a host loads every session with work, and no other', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(60_000) }, ask: {} };
  const first = await bed.host();
  bed.models.answers = [ask(call('c1', 'slow'))];
  await bed.start({}, { session: 'busy' });
  bed.models.answers = [ask(call('c1', 'ask'))];
  for (const session of ['parked', 'ended']) await bed.start({ permissions: ASKING }, { session });
  await bed.send('cancel', {}, { session: 'ended' });
  const parked = await bed.lines('parked');
  first.abandon();
  const host = createSessionHost(bed.ports());
  const started = host.start();
  await bed.time.settle();
  expect(await started).toEqual({ found: 3 });
  expect(host.live).toBe(1);
  expect(await bed.lines('busy')).toContainEqual(expect.stringContaining('c1 interrupted'));
  // A session that waits only for a command needs no memory: no host records a new owner.
  expect(await bed.lines('parked')).toEqual(parked);
  host.abandon();
});

test('a host loads a bounded number of sessions at a time, and an unreadable one does not block the others', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(3_600_000) } };
  const ids = Array.from({ length: 40 }, (_, i) => `s${i}`);
  const first = await bed.host();
  for (const session of ids) {
    bed.models.answers = [ask(call('c1', 'slow'))];
    await bed.start({}, { session });
  }
  first.abandon();
  const begun: string[] = [];
  const journal: Journal = {
    ...brokenFor(bed, 'none', {}),
    async *read(ref, fence) {
      begun.push(ref.sessionId);
      // The number of concurrent claims does not answer.
      if (begun.length <= 32) await new Promise(() => {});
      yield* bed.journal.read(ref, fence);
    },
  };
  await bed.host({}, { journal });
  expect(begun).toHaveLength(32);
  await bed.time.advance(2_100);
  const waited = ids.filter((id) => !begun.slice(0, 32).includes(id));
  expect(waited).toHaveLength(8);
  for (const id of waited) expect(await bed.lines(id), id).toContain('owned 2');
});

test('a stop lets running calls end, and starts no model call', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(3_000, 'finished') } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  const host = await bed.host();
  await bed.start();
  const stopped = host.stop(10_000);
  await bed.time.advance(20_000);
  await stopped;
  expect((await bed.lines()).slice(-3)).toEqual(['call_ended c1 ok', 'turn_end 1', 'turn_start 2']);
  expect(bed.models.requests).toHaveLength(1);
  expect(bed.toolSource.openNow).toBe(0);
  // Nothing was abandoned, so no outcome is unknown to the next host.
  await bed.host();
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  expect(bed.toolSource.runs).toHaveLength(1);
});

test('a stop accepts no command: the next host gets those that arrive meanwhile', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(3_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  const host = await bed.host();
  await bed.start();
  const stopped = host.stop();
  const id = await bed.send('steer', 'listen');
  await bed.time.advance(20_000);
  await stopped;
  expect(bed.told(id)).toEqual([]);
  await bed.host();
  await bed.time.advance(10_000);
  expect(bed.told(id)[0]).toBe('accepted');
});

test('a stop waits for a call that does not end for the grace period only', async () => {
  const bed = testBed();
  bed.tools = { endless: { run: deaf(600_000) } };
  bed.models.answers = [ask(call('c1', 'endless')), say('done')];
  const host = await bed.host();
  await bed.start();
  let done = false;
  void host.stop(2_000).then(() => {
    done = true;
  });
  await bed.time.advance(1_900);
  expect(done).toBe(false);
  await bed.time.advance(200);
  expect(done).toBe(true);
  expect(host.live).toBe(0);
});

test('a stop does not wait for the calls of a session that another host has taken over', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(500) }, endless: { run: deaf(600_000) } };
  bed.models.answers = [ask(call('c1', 'slow'), call('c2', 'endless')), say('done')];
  const host = await bed.host();
  await bed.start();
  let done = false;
  void host.stop(10_000).then(() => {
    done = true;
  });
  const newest = await bed.bus.journal.last(refOf());
  const foreign = { ...recordOf(newest?.bytes ?? new Uint8Array()), attempt: 'another' };
  await bed.bus.journal.append(refOf(), Buffer.from(JSON.stringify(foreign)), newest?.fence ?? 0);
  await bed.time.advance(400);
  expect(done).toBe(false);
  // The append of the first result finds the other host's record.
  await bed.time.advance(600);
  expect(done).toBe(true);
  bed.forget('s1');
});

/** A tool whose worker continues its calls regardless of hosts. */
function heldElsewhere(): { tool: FakeTool; end(): void; attached: number } {
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const answered = async (signal: AbortSignal): Promise<ToolOutcome> => {
    const left = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    await Promise.race([ended, left]);
    return signal.aborted ? { ...answer('left', 'error'), status: 'lost' } : answer('the one result');
  };
  const held = {
    attached: 0,
    end: () => end(),
    tool: {
      run: (toolCall, signal) => {
        toolCall.onTaken?.();
        return answered(signal);
      },
      probe: () => ({
        state: 'running',
        attach: (toolCall, signal) => {
          held.attached++;
          toolCall.onTaken?.();
          return answered(signal);
        },
      }),
    } satisfies FakeTool,
  };
  return held;
}

test('a stop does not wait for a remote call: the next host attaches to it, and its result arrives once', async () => {
  const bed = testBed();
  const held = heldElsewhere();
  bed.tools = { remote: held.tool };
  bed.models.answers = [ask(call('c1', 'remote')), say('done')];
  let host = await bed.host();
  await bed.start();
  // Twice: an attached call is released in the same way.
  for (let stop = 1; stop <= 2; stop++) {
    let done = false;
    void host.stop().then(() => {
      done = true;
    });
    await bed.time.advance(100);
    expect(done).toBe(true);
    host = await bed.host();
    expect(held.attached).toBe(stop);
  }
  held.end();
  await bed.time.advance(1_000);
  expect((await bed.lines()).filter((line) => line.startsWith('call_ended'))).toEqual(['call_ended c1 ok']);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  expect(bed.toolSource.runs).toHaveLength(1);
});

test('a stop waits for a call in its own process, and for a remote call that was asked to stop', async () => {
  const bed = testBed();
  const held = heldElsewhere();
  bed.tools = { remote: { ...held.tool, run: (toolCall, _signal) => deafTo(toolCall) }, slow: { run: taking(3_000) } };
  const deafTo = (toolCall: ToolCall) => {
    toolCall.onTaken?.();
    return new Promise<ToolOutcome>(() => undefined);
  };
  bed.models.answers = [ask(call('c1', 'remote'), call('c2', 'slow')), say('done')];
  const host = await bed.host();
  await bed.start();
  await bed.send('cancel_call', { call_id: 'c1' });
  let done = false;
  void host.stop().then(() => {
    done = true;
  });
  await bed.time.advance(1_500);
  expect(done).toBe(false);
  await bed.time.advance(10_000);
  expect(done).toBe(true);
  expect(await bed.lines()).toEqual(expect.arrayContaining(['call_ended c1 cancelled timed_out', 'call_ended c2 ok']));
});

test('RUNNER-10: a host that has left everything appends nothing more, whatever outcomes arrive', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: deaf(1_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  const host = await bed.host();
  await bed.start();
  const before = bed.journal.tried.length;
  host.abandon();
  await bed.time.advance(60_000);
  expect(bed.journal.tried).toHaveLength(before);
  expect(bed.log.map(({ message }) => message)).toContain('late outcome dropped');
});

test('RUNNER-3: a host that has left everything publishes nothing of its appends in flight', async () => {
  const bed = testBed();
  bed.models.answers = [say('done', { delayMs: 600_000 })];
  const host = await bed.host();
  await bed.start();
  bed.journal.next = [
    async (append) => {
      const result = await append();
      await bed.time.clock().sleep(1_000);
      return result;
    },
  ];
  const id = await bed.send('steer', 'listen');
  host.abandon();
  await bed.time.advance(5_000);
  expect(bed.told(id)).toEqual([]);
  // It is durable, and the next host has it.
  await bed.host();
  expect((await bed.lines()).filter((line) => line.startsWith('steering_received'))).toHaveLength(1);
});

test('a grace period ends when its host leaves', async () => {
  const bed = testBed();
  bed.tools = { endless: { run: deaf(600_000) } };
  bed.models.answers = [ask(call('c1', 'endless')), say('done')];
  const host = await bed.host();
  await bed.start();
  await bed.send('cancel_call', { call_id: 'c1', timeout_ms: 300_000 });
  host.abandon();
  await bed.time.advance(310_000);
  expect(bed.log.map(({ message }) => message)).not.toContain('late outcome dropped');
});

test('after a host has left its sessions, another host gets the commands', async () => {
  const bed = testBed();
  const first = await bed.host();
  await bed.host();
  first.abandon();
  await bed.start();
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('a session with an unreadable journal does not block other sessions', async () => {
  const bed = testBed();
  bed.models.answers = [say('done', { delayMs: 1_000 })];
  const first = await bed.host();
  await bed.start({}, { session: 'bad' });
  await bed.start({}, { session: 'good' });
  first.abandon();
  let isBroken = true;
  const fail = () => {
    if (isBroken) throw new Error('no leader');
  };
  const journal = brokenFor(bed, 'bad', {
    async *read(ref, fence) {
      fail();
      yield* bed.journal.read(ref, fence);
    },
    async last(ref) {
      fail();
      return bed.journal.last(ref);
    },
  });
  const second = await bed.host({}, { journal });
  await bed.start({}, { session: 'new' });
  await bed.time.advance(5_000);
  for (const session of ['good', 'new']) expect((await bed.lines(session)).at(-1)).toBe('agent_end end_turn');
  await expect(second.status(refOf('bad'))).rejects.toThrow('no leader');
  // It is claimed as soon as possible, without a command.
  isBroken = false;
  await bed.time.advance(60_000);
  expect((await bed.lines('bad')).at(-1)).toBe('agent_end end_turn');
});

test('a session with an unwritable journal does not block other sessions', async () => {
  const bed = testBed();
  const journal = brokenFor(bed, 'bad', { append: async () => ({ status: 'ambiguous', cause: 'no answer' }) });
  await bed.host({}, { journal });
  await bed.start({}, { session: 'bad' });
  await bed.start({}, { session: 'good' });
  await bed.time.advance(5_000);
  expect((await bed.lines('good')).at(-1)).toBe('agent_end end_turn');
  expect(await bed.bytes('bad')).toEqual([]);
});

test('a session never continues from a record that breaks the hash chain', async () => {
  const bed = testBed();
  const host = await bed.host();
  await bed.start();
  await host.stop();
  const last = await bed.bus.journal.last(refOf());
  const broken = { ...JSON.parse(Buffer.from(last?.bytes as Uint8Array).toString()), prev_hash: 'f'.repeat(64) };
  const journal = brokenFor(bed, 's1', {
    async *read(ref, fence) {
      for await (const stored of bed.journal.read(ref, fence))
        yield stored.fence === last?.fence ? { ...stored, bytes: Buffer.from(JSON.stringify(broken)) } : stored;
    },
  });
  const second = await bed.host({}, { journal });
  await expect(second.status(refOf())).rejects.toMatchObject({ code: 'chain_broken' });
  const before = bed.journal.tried.length;
  await bed.send('prompt', 'go on');
  await bed.time.advance(60_000);
  expect(bed.journal.tried).toHaveLength(before);
});

test.each<[what: string, code: string, change: object]>([
  ['whose events lead to another state', 'replay_diverged', { state: 'failed' }],
  [
    'with an event that the machine does not accept',
    'event_not_accepted',
    { events: [{ type: 'turn_start', turn: 9 }] },
  ],
])('a session never continues from a record %s: its commands are rejected', async (_what, code, change) => {
  const bed = testBed();
  const host = await bed.host();
  await bed.start();
  await host.stop();
  const last = await bed.bus.journal.last(refOf());
  const broken = { ...JSON.parse(Buffer.from(last?.bytes as Uint8Array).toString()), ...change };
  const journal = brokenFor(bed, 's1', {
    async *read(ref, fence) {
      for await (const stored of bed.journal.read(ref, fence))
        yield stored.fence === last?.fence ? { ...stored, bytes: Buffer.from(JSON.stringify(broken)) } : stored;
    },
  });
  const second = await bed.host({}, { journal });
  await expect(second.status(refOf())).rejects.toMatchObject({ code });
  const id = await bed.send('prompt', 'go on');
  expect(bed.told(id)).toEqual([`rejected ${code}`]);
  expect(second.live).toBe(0);
});

test('RUNNER-9: a host that lost a session keeps the outcomes of its calls, without the session in memory', async () => {
  const bed = testBed();
  bed.tools = { count: { run: taking(1_000, 'counted') }, slow: { run: taking(3_000) } };
  bed.models.answers = [ask(call('c1', 'count'), call('c2', 'slow')), say('done')];
  const first = await bed.host({ passivateAfterMs: 5_000, sweepEveryMs: 500 });
  await bed.start();
  const second = await bed.rival({ passivateAfterMs: 5_000, sweepEveryMs: 500 });
  await bed.time.advance(1_500);
  // The first host's append of c1's result was refused, so it left the session. An old delivery loads it again.
  expect(first.live).toBe(0);
  await bed.send('steer', 'listen', { id: 'st' });
  await bed.time.advance(500);
  expect((await bed.lines()).filter((line) => line.startsWith('owned'))).toEqual(['owned 2', 'owned 3']);
  await bed.time.advance(60_000);
  expect([first.live, second.live]).toEqual([0, 0]);
  expect((await first.status(refOf()))?.state).toBe('stopped');
  expect(bed.toolSource.runs.filter(({ tool }) => tool === 'count')).toHaveLength(1);
});

test('a host reports another host’s session as the journal says, and unloads it when idle', async () => {
  const bed = testBed();
  bed.tools = { count: { run: taking(1_000, 'counted') } };
  bed.models.answers = [ask(call('c1', 'count')), say('done', { delayMs: 30_000 })];
  const inner = bed.bus.createInbox();
  let again = () => {};
  const open: CommandInbox['open'] = (handlers, partitions) =>
    inner.open(
      {
        ...handlers,
        notify: (notification) => {
          again = () => handlers.notify(notification);
          handlers.notify(notification);
        },
      },
      partitions,
    );
  const first = await bed.host({ passivateAfterMs: 5_000, sweepEveryMs: 500 }, { inbox: { ...inner, open } });
  await bed.start();
  await bed.rival();
  await bed.time.advance(2_000);
  // The first host has left the session, with the call's outcome unrecorded. An old delivery makes it look at the
  // session.
  expect(first.live).toBe(0);
  again();
  await bed.time.settle();
  expect(first.live).toBe(1);
  await bed.time.advance(3_000);
  const n = (await bed.records()).length;
  expect((await first.status(refOf()))?.n).toBe(n);
  await bed.time.advance(60_000);
  expect((await first.status(refOf()))?.state).toBe('stopped');
  expect(first.live).toBe(0);
});

test('RUNNER-8: repeated failures increase the delay, which is reset once the journal is readable', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(1_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  const appendBounds = { attemptsMax: 1, firstDelayMs: 1, maxDelayMs: 1 };
  await bed.host({ appendBounds, passivateAfterMs: 3_600_000 });
  await bed.start();
  bed.journal.always = 'lost';
  await bed.time.advance(40_000);
  const tries = bed.journal.tried.length;
  await bed.time.advance(60_000);
  expect(bed.journal.tried.length - tries).toBeLessThanOrEqual(3);
  bed.journal.always = 'none';
  await bed.time.advance(60_000);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  const epochs = (await bed.lines()).filter((line) => line.startsWith('owned'));
  expect(epochs).toEqual(['owned 2']);
  // A new failure is retried as quickly as the first one.
  bed.models.answers = [say('later', { delayMs: 1_000 })];
  await bed.send('prompt', 'go on');
  bed.journal.next = ['lost'];
  await bed.time.advance(1_000 + 500 + 10);
  expect((await bed.lines()).filter((line) => line.startsWith('owned'))).toEqual(['owned 2', 'owned 3']);
});

test('a command for a session with an unreadable journal is answered once, and others continue', async () => {
  const bed = testBed();
  const garbage = { bytes: Buffer.from('garbage'), fence: 1 };
  const journal = brokenFor(bed, 'broken', {
    async *read() {
      yield garbage;
    },
    last: async () => garbage,
  });
  const host = await bed.host({}, { journal });
  const id = await bed.send('steer', 'hello', { session: 'broken' });
  await bed.time.advance(60_000);
  expect(bed.told(id)).toEqual(['rejected record_unreadable']);
  await bed.start({}, { session: 'sound' });
  expect((await bed.lines('sound')).at(-1)).toBe('agent_end end_turn');
  expect(host.live).toBe(1);
  host.abandon();
});
