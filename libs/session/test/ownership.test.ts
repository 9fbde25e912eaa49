/**
 * Several hosts on one bus: owners of sessions, and transfers between hosts. RUNNER-10.
 */
import type { CommandInbox, CommandNotification, HostChannel } from '@coxswain/ports';
import { decodeRecord, HEADERS, HOST_LIVENESS, PARTITIONS, partitionOf, Quotas } from '@coxswain/protocol';
import { expect, test, vi } from 'vitest';
import { assignPartitions } from '../src/hosting/assign-partitions.ts';
import type { HostOptions, SessionHost } from '../src/mod.ts';
import { ask, call, say } from './fake-model.ts';
import { deaf, taking } from './fake-tools.ts';
import { refOf, type TestBed, testBed } from './test-bed.ts';

interface Crew {
  readonly bed: TestBed;
  readonly first: SessionHost;
  /** Adds a host, with the name of the first one and a number. */
  join(options?: HostOptions): Promise<SessionHost>;
  /** A session of the first host while it is alone, and of the second one afterwards. */
  readonly moving: string;
  /** A session of the first host in either case. */
  readonly staying: string;
}

/** A host channel whose heartbeats do not arrive for a while. */
function slowChannel() {
  let isSlow = false;
  let catchUp = () => {};
  const caughtUp = () => new Promise<void>((resolve) => (catchUp = resolve));
  return {
    line: (line: HostChannel): HostChannel => ({
      ...line,
      open: (host, handlers) =>
        line.open(host, { ...handlers, heartbeat: (beat) => !isSlow && handlers.heartbeat(beat) }),
      caughtUp: async () => {
        if (isSlow) await caughtUp();
        return line.caughtUp();
      },
    }),
    slowDown: () => (isSlow = true),
    recover: () => {
      isSlow = false;
      catchUp();
    },
  };
}

const QUICK: HostOptions = { liveness: HOST_LIVENESS, passivateAfterMs: 2_000, sweepEveryMs: 500 };

/** A bed for two hosts, each with its own clock and channel. The second one has not started. */
async function crew(
  firstLine: (line: HostChannel) => HostChannel = (line) => line,
  firstOptions: HostOptions = {},
): Promise<Crew> {
  const bed = testBed();
  let hosts = 0;
  const join = (options: HostOptions = {}) => {
    const owner = `host${++hosts}`;
    const line = bed.bus.createHostChannel();
    const ports = { clock: bed.time.clock(owner), hostChannel: hosts === 1 ? firstLine(line) : line };
    return bed.host({ ...QUICK, name: owner, ...options }, ports);
  };
  const first = await join(firstOptions);
  const [one, two] = [`${first.id}-1`, 'host2-2-1'];
  const shares = assignPartitions([one, two]);
  const sessionOf = (host: string) => {
    for (let i = 1; ; i++) if (shares.get(host)?.includes(partitionOf(`s${i}`))) return `s${i}`;
  };
  return { bed, first, join, moving: sessionOf(two), staying: sessionOf(one) };
}

const writersOf = async (bed: TestBed, session: string) => [
  ...new Set((await bed.records(session)).map(({ attempt }) => attempt.split('.')[0])),
];
const noted = async (bed: TestBed, session: string) => {
  const notes = await bed.bus.active.list(partitionOf(session));
  return notes.filter(({ ref }) => ref.sessionId === session).map(({ host }) => host);
};

/** Outcomes that the log reports as dropped. */
const late = (bed: TestBed) =>
  bed.log.flatMap(({ message, fields }) => {
    const { session_id, effect_id } = fields as { session_id?: string; effect_id?: string };
    return message === 'late outcome dropped' ? [{ session_id, effect_id }] : [];
  });

test('hosts divide the partitions: each command reaches its session’s host', async () => {
  const { bed, first, join, moving, staying } = await crew();
  const second = await join();
  await bed.time.advance(1_000);
  bed.models.answers = [say('done'), say('done')];
  await bed.start({}, { session: moving });
  await bed.start({}, { session: staying });
  expect(await writersOf(bed, moving)).toEqual([second.id]);
  expect(await writersOf(bed, staying)).toEqual([first.id]);
});

test('a host that joins gets its share, and a session goes with its partition once its calls have ended', async () => {
  const { bed, first, join, moving } = await crew();
  bed.tools = { slow: { run: taking(5_000, 'finished') } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session: moving });
  const second = await join();
  await bed.time.advance(4_000);
  expect(await writersOf(bed, moving)).toEqual([first.id]);
  await bed.time.advance(1_100);
  expect(await writersOf(bed, moving)).toEqual([first.id, second.id]);
  const lines = await bed.lines(moving);
  expect(lines).toContain('call_ended c1 ok');
  expect(lines.at(-1)).toBe('agent_end end_turn');
  expect(bed.toolSource.runs).toHaveLength(1);
  expect([first.live, second.live]).toEqual([0, 1]);
});

test('an idle session moves with its partition at once, without work for its next host', async () => {
  const { bed, first, join, moving } = await crew();
  bed.models.answers = [say('done'), say('again')];
  await bed.start({}, { session: moving });
  const n = (await bed.records(moving)).length;
  const second = await join();
  await bed.time.advance(1_000);
  expect([first.live, second.live]).toEqual([0, 0]);
  expect(await bed.records(moving)).toHaveLength(n);
  await bed.send('prompt', 'again', { session: moving });
  expect(await writersOf(bed, moving)).toEqual([first.id, second.id]);
});

test.each([
  ['before its partition moved', 5_000, 0],
  ['because its partition moved', 0, 1],
])('the queue of a session counts for no quota of the host that passivated it %s', async (_, waitMs, live) => {
  const quotas = Quotas.parse({ pending_bytes: 100 });
  const { bed, first, join, moving, staying } = await crew(undefined, { quotas: () => quotas });
  bed.models.answers = [say('done'), say('done')];
  await bed.start({}, { session: staying });
  await bed.time.advance(5_000);
  await bed.start({}, { session: moving });
  await bed.send('steer', 'x'.repeat(80), { session: moving });
  await bed.time.advance(waitMs);
  expect(first.live).toBe(live);
  expect(bed.told(await bed.send('steer', 'x'.repeat(30), { session: staying }))).toEqual(['rejected quota_exceeded']);
  await join();
  await bed.time.advance(1_000);
  const within = await bed.send('steer', 'x'.repeat(30), { session: staying });
  expect(bed.told(within)[0]).toMatch(/^accepted/);
});

test('commands still reach a session that its previous host is completing', async () => {
  const { bed, first, join, moving } = await crew();
  bed.tools = { slow: { run: taking(5_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session: moving });
  await join();
  await bed.time.advance(1_000);
  const steer = await bed.send('steer', 'listen', { session: moving });
  const cancel = await bed.send('cancel_call', { call_id: 'c1' }, { session: moving });
  await bed.time.advance(100);
  expect(bed.told(steer)[0]).toBe('accepted');
  expect(bed.told(cancel)[0]).toBe('accepted');
  expect(bed.toolSource.runs[0]).toMatchObject({ aborted: true });
  expect((await bed.lines(moving)).filter((line) => line.startsWith('call_ended'))).toEqual([
    'call_ended c1 cancelled',
  ]);
  expect((await writersOf(bed, moving))[0]).toBe(first.id);
  await bed.time.advance(5_000);
  expect((await bed.lines(moving)).at(-1)).toBe('agent_end end_turn');
});

test('RUNNER-11: a command that its previous host rejects without a record has no receipt: the next host judges it', async () => {
  const quotas = Quotas.parse({ sender_commands_burst: 1, sender_commands_per_second: 0.01 });
  const { bed, join, moving } = await crew(undefined, { quotas: () => quotas });
  bed.tools = { slow: { run: taking(5_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session: moving, headers: { [HEADERS.actor]: 'another' } });
  await join();
  await bed.time.advance(1_000);
  await bed.send('steer', 'recorded', { session: moving, id: 'one' });
  await bed.send('steer', 'beyond the quota', { session: moving, id: 'two' });
  await bed.time.advance(1_000);
  expect([bed.told('one'), bed.told('two')]).toEqual([['accepted'], []]);
  await bed.time.advance(5_000);
  expect(bed.told('two')).toEqual(['accepted', 'delivered iteration_end']);
});

test('a call that does not end keeps its session until the bound of a hand-over, and is then in doubt', async () => {
  const { bed, first, join, moving } = await crew();
  bed.tools = { endless: { run: deaf(600_000) } };
  bed.models.answers = [ask(call('c1', 'endless')), say('done')];
  await bed.start({}, { session: moving });
  const second = await join();
  await bed.time.advance(9_000);
  expect(await writersOf(bed, moving)).toEqual([first.id]);
  await bed.time.advance(3_000);
  expect(await writersOf(bed, moving)).toEqual([first.id, second.id]);
  expect(await bed.lines(moving)).toContainEqual(expect.stringContaining('c1 interrupted'));
});

test('a session whose release message was lost is found within a second', async () => {
  const { bed, first, moving } = await crew();
  bed.tools = { slow: { run: taking(3_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session: moving });
  const deafLine = { ...bed.bus.createHostChannel() };
  const open = deafLine.open;
  deafLine.open = (host, handlers) => open(host, { ...handlers, sessionLeft: () => undefined });
  const second = await bed.host({ ...QUICK, name: 'host2' }, { hostChannel: deafLine, clock: bed.time.clock('host2') });
  await bed.time.advance(5_000);
  expect(await writersOf(bed, moving)).toEqual([first.id, second.id]);
  expect((await bed.lines(moving)).at(-1)).toBe('agent_end end_turn');
});

test('a session that gets work during its release, and may not start it, is not released', async () => {
  const channel = slowChannel();
  const { bed, first, join, staying } = await crew(channel.line);
  await join();
  await bed.time.advance(1_000);
  const { put } = bed.bus.snapshots;
  const kept: (() => void)[] = [];
  Object.assign(bed.bus.snapshots, {
    put: async (...args: Parameters<typeof put>) => {
      await new Promise<void>((resolve) => kept.push(resolve));
      return put(...args);
    },
  });
  bed.models.answers = [say('done'), say('again')];
  await bed.start({}, { session: staying });
  await bed.time.advance(1_000);
  channel.slowDown();
  await bed.time.advance(1_700);
  expect(kept).toHaveLength(1);
  await bed.send('prompt', 'again', { session: staying });
  await bed.time.advance(10);
  for (const keep of kept) keep();
  await bed.time.advance(100);
  channel.recover();
  await bed.time.advance(5_000);
  expect(await writersOf(bed, staying)).toEqual([first.id]);
  expect((await bed.lines(staying)).filter((line) => line.startsWith('agent_end'))).toHaveLength(2);
});

test('a call that is recorded while its host may not start it is started before the session is released', async () => {
  const channel = slowChannel();
  const { bed, first, join, staying } = await crew(channel.line);
  await join();
  await bed.time.advance(1_000);
  bed.tools = { slow: { run: taking(200) } };
  bed.models.answers = [{ ...ask(call('c1', 'slow')), delayMs: 1_700 }, say('done')];
  await bed.start({}, { session: staying });
  channel.slowDown();
  await bed.time.advance(1_650);
  bed.journal.next = [
    async (append) => {
      await bed.time.clock('store').sleep(200);
      return append();
    },
  ];
  await bed.time.advance(100);
  const stopped = first.stop();
  await bed.time.advance(300);
  channel.recover();
  await bed.time.advance(5_000);
  await stopped;
  expect(await bed.lines(staying)).toContain('call_ended c1 ok');
});

test('a host that joins slowly claims no session before it has its lease, and continues those it claims then', async () => {
  const { bed, first, join } = await crew();
  // Alive, without partitions.
  await join({ partitions: [] });
  await bed.time.advance(1_000);
  const isMoving = (session: string) =>
    [`${first.id}-1`, 'slow-3-1'].every((host) =>
      assignPartitions([host, 'host2-2-1']).get(host)?.includes(partitionOf(session)),
    );
  const session = Array.from({ length: 200 }, (_, i) => `s${i}`).find(isMoving) as string;
  bed.tools = { slow: { run: taking(60_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session });
  const line = bed.bus.createHostChannel();
  const clock = bed.time.clock('slow');
  const open: HostChannel['open'] = async (host, handlers) => {
    await line.open(host, handlers);
    await clock.sleep(2 * HOST_LIVENESS.leaseMs);
  };
  const joining = bed.host({ ...QUICK, name: 'slow' }, { clock, hostChannel: { ...line, open } });
  await bed.time.advance(HOST_LIVENESS.leaseMs);
  const stopped = first.stop(0);
  await bed.time.advance(10_000);
  const [, ...next] = await writersOf(bed, session);
  expect(next).toContain((await joining).id);
  expect((await bed.lines(session)).at(-1)).toBe('agent_end end_turn');
  await stopped;
});

test.each([
  ['and the notes are read', 0],
  ['and before its notes are read', 8_000],
])(
  'a host whose partition came back, %s, retries no session that another host still lets end its calls',
  async (_, readMs) => {
    const { bed, first, join, moving } = await crew(undefined, {
      appendBounds: { attemptsMax: 1, firstDelayMs: 1, maxDelayMs: 1 },
    });
    bed.tools = { slow: { run: taking(8_000) } };
    bed.models.answers = Array.from({ length: 8 }, () => say('not stored', { delayMs: 10 }));
    await bed.start({}, { session: moving });
    // Its next retry follows eight seconds after the last one.
    bed.journal.always = async (append, { bytes }) =>
      decodeRecord(bytes).attempt.startsWith(first.id) ? { status: 'ambiguous', cause: 'no answer' } : append();
    await bed.time.advance(8_000);
    bed.models.answers = [ask(call('c1', 'slow')), say('done')];
    const second = await join();
    await bed.time.advance(3_000);
    expect(bed.toolSource.runs).toHaveLength(1);
    const { active } = bed.bus;
    const list = active.list.bind(active);
    if (readMs > 0)
      vi.spyOn(active, 'list').mockImplementation((p) =>
        bed.time
          .clock()
          .sleep(readMs)
          .then(() => list(p)),
      );
    const stopped = second.stop();
    bed.journal.always = 'none';
    await bed.time.advance(10_000 + 3 * readMs);
    await stopped;
    const lines = await bed.lines(moving);
    expect(lines).toContain('call_ended c1 ok');
    expect(lines.at(-1)).toBe('agent_end end_turn');
    expect(bed.toolSource.runs).toHaveLength(1);
  },
);

test('a host that stops without contact to its peers waits for nothing', async () => {
  const { bed, join } = await crew();
  await join();
  const channel = slowChannel();
  let sleeps = 0;
  const clock = bed.time.clock('doubter');
  const doubter = await bed.host(
    { ...QUICK, name: 'doubter' },
    {
      hostChannel: channel.line(bed.bus.createHostChannel()),
      clock: {
        ...clock,
        sleep: (ms, signal) => {
          // Nothing else would ever be processed.
          if (signal?.aborted && ++sleeps > 100) return new Promise(() => undefined);
          return clock.sleep(ms, signal);
        },
      },
    },
  );
  await bed.time.advance(1_000);
  channel.slowDown();
  await bed.time.advance(HOST_LIVENESS.leaseMs + 400);
  expect(doubter.hasLease).toBe(false);
  doubter.abandon();
  await bed.time.advance(1_000);
  expect(sleeps).toBeLessThan(10);
});

test('a session whose note names a live host that no longer has it is found within a second, too', async () => {
  const { bed, first, join, moving } = await crew();
  bed.tools = { slow: { run: taking(60_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session: moving });
  first.abandon();
  // Another host is noted and does not know the session: the state after a rival has lost it.
  const third = await bed.host({ ...QUICK, name: 'host3' }, { hostChannel: bed.bus.createHostChannel() });
  await bed.time.advance(1_000);
  await bed.bus.active.note(refOf(moving), `${third.id}-1`);
  const second = await join();
  await bed.time.advance(4_000);
  const [, ...later] = await writersOf(bed, moving);
  expect([second.id, third.id]).toContain(later[0]);
  expect((await bed.lines(moving)).at(-1)).toBe('agent_end end_turn');
});

test('a stopping host hands over session by session: one without calls does not wait for the others', async () => {
  const { bed, first, join, moving, staying } = await crew();
  const second = await join();
  await bed.time.advance(1_000);
  bed.tools = { slow: { run: taking(8_000) }, quick: { run: taking(500) } };
  bed.models.answers = [ask(call('c1', 'slow'))];
  await bed.start({}, { session: staying });
  const third = sameShare(staying);
  bed.models.answers = [ask(call('c1', 'quick')), say('done')];
  await bed.start({}, { session: third });
  void first.stop();
  await bed.time.advance(700);
  expect(await writersOf(bed, third)).toEqual([first.id, second.id]);
  expect(await writersOf(bed, staying)).toEqual([first.id]);
  bed.models.answers = [say('done')];
  await bed.time.advance(8_000);
  expect(await writersOf(bed, staying)).toEqual([first.id, second.id]);
  expect(bed.toolSource.runs).toHaveLength(2);
  expect(moving).not.toBe(staying);
});

test('the sessions of a dead host continue as soon as its peers consider it dead', async () => {
  const { bed, first, join, staying } = await crew();
  bed.tools = { slow: { run: taking(60_000) } };
  const second = await join();
  await bed.time.advance(1_000);
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session: staying });
  expect(await writersOf(bed, staying)).toEqual([first.id]);
  first.abandon();
  await bed.time.advance(1_500);
  expect(await writersOf(bed, staying)).toEqual([first.id]);
  await bed.time.advance(1_500);
  expect(await writersOf(bed, staying)).toEqual([first.id, second.id]);
  expect((await bed.lines(staying)).at(-1)).toBe('agent_end end_turn');
});

test('a host that was frozen past its lease aborts its effects, starts nothing, and takes another name', async () => {
  const { bed, first, join, staying } = await crew();
  bed.tools = { slow: { run: taking(60_000) } };
  const second = await join();
  await bed.time.advance(1_000);
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session: staying });
  const [before] = await noted(bed, staying);
  bed.time.hold('host1', bed.time.nowMs + 4_000);
  await bed.time.advance(3_900);
  expect(await writersOf(bed, staying)).toEqual([first.id, second.id]);
  const tried = bed.journal.tried.length;
  await bed.time.advance(300);
  expect(bed.toolSource.runs[0]).toMatchObject({ aborted: true });
  expect(bed.journal.tried).toHaveLength(tried);
  expect(bed.log.map(({ message }) => message)).toContain(
    'other hosts received no heartbeat from this host: it releases its sessions to them',
  );
  // Its partitions return to it, and the session too if it has work.
  await bed.time.advance(5_000);
  bed.models.answers = [ask(call('c2', 'slow'))];
  await bed.send('prompt', 'again', { session: staying });
  const [now] = await noted(bed, staying);
  expect(now).not.toBe(before);
});

test('a host that returns takes no session from the host that continued it', async () => {
  const { bed, first, join } = await crew();
  const second = await join();
  await bed.time.advance(1_000);
  // Its partition belongs to the first host again as soon as that returns, under its next name.
  const names = [1, 2].map((no) => `${first.id}-${no}`);
  const isFirsts = (session: string) =>
    names.every((name) => assignPartitions([name, 'host2-2-1']).get(name)?.includes(partitionOf(session)));
  const session = Array.from({ length: 200 }, (_, i) => `s${i}`).find(isFirsts) as string;
  bed.tools = { slow: { run: taking(6_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), ask(call('c2', 'slow')), say('done')];
  await bed.start({}, { session });
  bed.time.hold('host1', bed.time.nowMs + 4_000);
  await bed.time.advance(15_000);
  expect((await writersOf(bed, session)).slice(0, 2)).toEqual([first.id, second.id]);
  expect(await bed.lines(session)).toContain('call_ended c2 ok');
});

test('outcomes of a frozen host are dropped, with a log line', async () => {
  const { bed, first, join, staying } = await crew();
  bed.tools = { slow: { run: taking(3_500, 'late') } };
  const second = await join();
  await bed.time.advance(1_000);
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session: staying });
  const [open] = (await bed.records(staying)).at(-1)?.effects_open ?? [];
  expect(late(bed)).toEqual([]);
  bed.time.hold('host1', bed.time.nowMs + 4_000);
  await bed.time.advance(12_000);
  expect(late(bed)).toContainEqual({ session_id: staying, effect_id: open });
  const ends = (await bed.records(staying)).filter(({ input }) => 'effect_id' in input && input.effect_id === open);
  expect(ends.filter(({ attempt }) => attempt.split('.')[0] === first.id)).toEqual([]);
  expect((await writersOf(bed, staying))[1]).toBe(second.id);
});

test('a session that is assigned to another host and back keeps the answer its host knows, unless the other has written', async () => {
  const { bed, join, moving } = await crew();
  bed.tools = { slow: { run: taking(500, 'known') } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session: moving });
  bed.journal.always = 'lost';
  await bed.time.advance(1_000);
  const second = await join();
  await bed.time.advance(12_000);
  second.abandon();
  await bed.time.advance(3_000);
  bed.journal.always = 'none';
  await bed.time.advance(60_000);
  expect(await bed.lines(moving)).toContain('call_ended c1 ok');
});

test('a host that stops drops the outcomes that it could not record, with a log line', async () => {
  const { bed, first, join, moving } = await crew();
  bed.tools = { slow: { run: taking(500, 'known') } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session: moving });
  const [open] = (await bed.records(moving)).at(-1)?.effects_open ?? [];
  bed.journal.always = 'lost';
  await bed.time.advance(1_000);
  await join();
  await bed.time.advance(12_000);
  expect(late(bed)).toEqual([]);
  const stopped = first.stop();
  await bed.time.advance(60_000);
  await stopped;
  expect(late(bed)).toContainEqual({ session_id: moving, effect_id: open });
});

test('messages of a refused append are dropped, with a log line', async () => {
  const { bed, first, moving } = await crew();
  bed.models.answers = [say('mine', { delayMs: 1_000 }), say('theirs')];
  await bed.start({}, { session: moving });
  const [open] = (await bed.records(moving)).at(-1)?.effects_open ?? [];
  // It claims every session, and owns this one when the first host's answer arrives.
  const rival = await bed.rival();
  await bed.time.advance(5_000);
  const ends = (await bed.records(moving)).filter(({ input }) => 'effect_id' in input && input.effect_id === open);
  expect(ends.map(({ attempt }) => attempt.split('.')[0])).toEqual([rival.id]);
  expect(late(bed)).toContainEqual({ session_id: moving, effect_id: open });
  expect(await writersOf(bed, moving)).toEqual([first.id, rival.id]);
});

test('a slow host that its peers consider alive continues its calls', async () => {
  const { bed, first, join, staying } = await crew();
  bed.tools = { slow: { run: taking(8_000) } };
  await join();
  await bed.time.advance(1_000);
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session: staying });
  bed.time.hold('host1', bed.time.nowMs + HOST_LIVENESS.leaseMs + 200);
  await bed.time.advance(12_000);
  expect(bed.toolSource.runs[0]).toMatchObject({ aborted: false });
  expect(await bed.lines(staying)).toContain('call_ended c1 ok');
  expect(await writersOf(bed, staying)).toEqual([first.id]);
});

test('a host without contact that cannot check its lease leaves all sessions', async () => {
  let isCut = false;
  const { bed, first, join, staying } = await crew((line) => ({
    ...line,
    heartbeat: (beat) => (isCut ? undefined : line.heartbeat(beat)),
    open: (host, handlers) => line.open(host, { ...handlers, heartbeat: (beat) => !isCut && handlers.heartbeat(beat) }),
    caughtUp: () => (isCut ? Promise.reject(new Error('no line')) : line.caughtUp()),
  }));
  bed.tools = { slow: { run: taking(60_000) } };
  const second = await join();
  await bed.time.advance(1_000);
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session: staying });
  isCut = true;
  await bed.time.advance(HOST_LIVENESS.ttlMs);
  expect(bed.toolSource.runs[0]).toMatchObject({ aborted: true });
  await bed.time.advance(1_000);
  expect(await writersOf(bed, staying)).toEqual([first.id, second.id]);
});

test('a host whose channel stops to answer while it checks a dead peer loses its lease in time', async () => {
  let isCut = false;
  const { bed, join, staying } = await crew((line) => ({
    ...line,
    heartbeat: (beat) => (isCut ? undefined : line.heartbeat(beat)),
    open: (host, handlers) => line.open(host, { ...handlers, heartbeat: (beat) => !isCut && handlers.heartbeat(beat) }),
    caughtUp: () => (isCut ? new Promise(() => {}) : line.caughtUp()),
  }));
  bed.tools = { slow: { run: taking(60_000) } };
  const second = await join();
  await bed.time.advance(1_000);
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session: staying });
  second.abandon();
  await bed.time.advance(HOST_LIVENESS.ttlMs - HOST_LIVENESS.beatMs - 100);
  isCut = true;
  // The peer is silent for too long before the lease is overdue.
  await bed.time.advance(HOST_LIVENESS.leaseMs - HOST_LIVENESS.beatMs);
  expect(bed.toolSource.runs[0]).toMatchObject({ aborted: false });
  await bed.time.advance(HOST_LIVENESS.leaseMs + 3 * HOST_LIVENESS.beatMs);
  expect(bed.toolSource.runs[0]).toMatchObject({ aborted: true });
});

test('a host that ends while it takes another name sends no further heartbeat', async () => {
  let opened = () => {};
  let opens = 0;
  const sent: string[] = [];
  const { bed, first, join } = await crew((line) => ({
    ...line,
    heartbeat: (beat) => {
      sent.push(`${beat.host} ${beat.state}`);
      line.heartbeat(beat);
    },
    open: async (host, handlers) => {
      await line.open(host, handlers);
      if (++opens > 1) await new Promise<void>((resolve) => (opened = resolve));
    },
  }));
  await join();
  await bed.time.advance(1_000);
  bed.time.hold('host1', bed.time.nowMs + 4_000);
  await bed.time.advance(4_500);
  expect(opens).toBe(2);
  first.abandon();
  const before = sent.length;
  opened();
  await bed.time.advance(1_000);
  expect(sent.slice(before)).toEqual([]);
});

test('a host that missed its own expiry learns of it later, and returns under another name', async () => {
  let isDeaf = true;
  const { bed, first, join, staying } = await crew((line) => ({
    ...line,
    open: (host, handlers) =>
      line.open(host, {
        ...handlers,
        heartbeat: (beat) => !(isDeaf && beat.state === 'left') && handlers.heartbeat(beat),
      }),
  }));
  bed.tools = { slow: { run: taking(60_000) } };
  const second = await join();
  await bed.time.advance(1_000);
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session: staying });
  bed.time.hold('host1', bed.time.nowMs + 4_000);
  await bed.time.advance(5_000);
  expect(await writersOf(bed, staying)).toEqual([first.id, second.id]);
  isDeaf = false;
  await bed.time.advance(1_000);
  expect(bed.toolSource.runs[0]).toMatchObject({ aborted: true });
  bed.models.answers = [say('again')];
  await bed.send('prompt', 'again', { session: staying });
  expect((await bed.records(staying)).at(-1)?.attempt).toBe(`${first.id}.1`);
});

test('a single host continues its calls, however long it was frozen', async () => {
  const { bed, first, staying } = await crew();
  bed.tools = { slow: { run: taking(8_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session: staying });
  bed.time.hold('host1', bed.time.nowMs + 5_000);
  await bed.time.advance(10_000);
  expect(await bed.lines(staying)).toContain('call_ended c1 ok');
  expect(await writersOf(bed, staying)).toEqual([first.id]);
});

test('a session that was loaded for reading only continues from its last owner’s state', async () => {
  const { bed, first, moving } = await crew((line) => ({
    ...line,
    // It hears no other host, so it keeps its sessions: a rival.
    open: (host, handlers) =>
      line.open(host, { ...handlers, heartbeat: (beat) => beat.host === host && handlers.heartbeat(beat) }),
  }));
  bed.tools = { slow: { run: taking(60_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({ permissions: { rules: [{ tool: 'slow', action: 'ask' }] } }, { session: moving });
  // It has a pending approval, so its host passivates it.
  await bed.time.advance(5_000);
  expect(first.live).toBe(0);
  const inbox = bed.bus.createInbox();
  let ring: (notification: CommandNotification) => void = () => undefined;
  const listening: CommandInbox = {
    ...inbox,
    open: async (handlers) => {
      ring = handlers.notify;
    },
  };
  const ports = { clock: bed.time.clock('host2'), hostChannel: bed.bus.createHostChannel(), inbox: listening };
  const second = await bed.host({ ...QUICK, passivateAfterMs: 60_000, name: 'host2' }, ports);
  await bed.time.advance(1_000);
  // A delivery of a recorded command: the session is loaded, and nothing is written.
  let acknowledged = false;
  ring({
    ref: refOf(moving),
    seq: 1,
    ack: () => {
      acknowledged = true;
    },
  });
  await bed.time.advance(500);
  expect([acknowledged, second.live]).toEqual([true, 1]);
  await bed.send('approve', { call_id: 'c1', decision: 'allow' }, { session: moving });
  expect(await writersOf(bed, moving)).toEqual([first.id]);
  await first.stop(0);
  await bed.time.advance(5_000);
  expect(await writersOf(bed, moving)).toEqual([first.id, second.id]);
  expect((await bed.lines(moving)).at(-1)).toBe('agent_end end_turn');
});

test('a session has a note from before its first record until it leaves memory without work', async () => {
  const { bed, first, staying } = await crew();
  bed.models.answers = [say('done')];
  const notes: (readonly (string | null)[])[] = [];
  bed.journal.next = [
    async (append) => {
      notes.push(await noted(bed, staying));
      return append();
    },
  ];
  await bed.start({}, { session: staying });
  expect(notes).toEqual([[`${first.id}-1`]]);
  await bed.time.advance(5_000);
  expect(first.live).toBe(0);
  expect(await noted(bed, staying)).toEqual([]);
});

test('a session with new work is noted again: its note may have been replaced and removed', async () => {
  const { bed, first, join, staying } = await crew();
  bed.tools = { slow: { run: taking(60_000) } };
  bed.models.answers = [say('done'), ask(call('c1', 'slow')), say('at last')];
  await bed.start({}, { session: staying });
  // Another host claimed it, found no work, and recorded that.
  const revision = await bed.bus.active.note(refOf(staying), 'another');
  await bed.bus.active.forget(refOf(staying), revision);
  expect(await noted(bed, staying)).toEqual([]);
  await bed.send('prompt', 'again', { session: staying });
  await bed.time.advance(100);
  expect(await noted(bed, staying)).toEqual([`${first.id}-1`]);
  first.abandon();
  const second = await join();
  await bed.time.advance(5_000);
  expect(await writersOf(bed, staying)).toEqual([first.id, second.id]);
  expect((await bed.lines(staying)).at(-1)).toBe('agent_end end_turn');
  await bed.time.advance(5_000);
  expect(await noted(bed, staying)).toEqual([]);
});

test('a note that cannot be written is retried, and the session records nothing meanwhile', async () => {
  const { bed, join, staying } = await crew();
  bed.models.answers = [say('done')];
  const { note } = bed.bus.active;
  let failures = 2;
  Object.assign(bed.bus.active, {
    note: (...args: Parameters<typeof note>) => {
      if (failures-- > 0) return Promise.reject(new Error('no leader'));
      return note(...args);
    },
  });
  await bed.start({}, { session: staying });
  expect(await bed.records(staying)).toEqual([]);
  await bed.time.advance(5_000);
  expect((await bed.lines(staying)).at(-1)).toBe('agent_end end_turn');
  expect(join).toBeDefined();
});

test('a host loads noted sessions, and reads no other session', async () => {
  const { bed, first, join } = await crew();
  for (let i = 1; i <= 20; i++) {
    bed.models.answers = [say('done')];
    await bed.start({}, { session: `ended-${i}` });
  }
  bed.tools = { slow: { run: taking(60_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session: 'busy' });
  await bed.time.advance(5_000);
  first.abandon();
  await bed.time.advance(3_000);
  const looked: string[] = [];
  const { last } = bed.journal;
  bed.journal.last = (ref) => {
    looked.push(ref.sessionId);
    return last.call(bed.journal, ref);
  };
  await join();
  await bed.time.advance(1_000);
  expect(looked).toEqual(['busy']);
  expect(await bed.lines('busy')).toContainEqual(expect.stringContaining('c1 interrupted'));
  expect(refOf('busy').sessionId).toBe('busy');
});

test('a session whose partition moves while its journal is read is left to the new host', async () => {
  const { bed, first, join } = await crew();
  const thirds = assignPartitions(['host2-2-1', 'host3-3-1']).get('host3-3-1') ?? [];
  const session = Array.from({ length: 200 }, (_, i) => `s${i}`).find((id) =>
    thirds.includes(partitionOf(id)),
  ) as string;
  bed.tools = { slow: { run: taking(60_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), ask(call('c2', 'slow')), say('done')];
  await bed.start({}, { session });
  first.abandon();
  await bed.time.advance(3_000);
  const { last } = bed.journal;
  const looks: (() => void)[] = [];
  bed.journal.last = async (ref) => {
    if (looks.length === 0) await new Promise<void>((resolve) => looks.push(resolve));
    return last.call(bed.journal, ref);
  };
  const second = await join();
  const third = await join();
  await bed.time.advance(1_000);
  for (const look of looks) look();
  await bed.time.advance(90_000);
  expect(looks).toHaveLength(1);
  expect(await writersOf(bed, session)).toEqual([first.id, third.id]);
  expect((await bed.lines(session)).at(-1)).toBe('agent_end end_turn');
  expect([second.live, third.live]).toEqual([0, 0]);
});

test('a session whose release was lost after the notes were read is found by its note', async () => {
  const { bed, join, moving } = await crew((line) => ({ ...line, announceSessionLeft: () => undefined }));
  bed.models.answers = [say('late', { delayMs: 60_000 }), say('done')];
  await bed.start({}, { session: moving });
  const { list } = bed.bus.active;
  let isRead = false;
  Object.assign(bed.bus.active, {
    list: (...args: Parameters<typeof list>) => (isRead ? list(...args) : Promise.resolve([])),
  });
  const second = await join();
  isRead = true;
  expect(await noted(bed, moving)).toEqual([null]);
  await bed.time.advance(90_000);
  expect(await writersOf(bed, moving)).toContain(second.id);
  expect((await bed.lines(moving)).at(-1)).toBe('agent_end end_turn');
});

/** The second host has joined and has read no note, so it does not know that the first one owns the session. */
async function unread(options: HostOptions = {}) {
  const hosts = await crew(undefined, options);
  const { bed, join, moving } = hosts;
  bed.tools = { slow: { run: taking(3_000) } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.start({}, { session: moving });
  const { list } = bed.bus.active;
  let isRead = false;
  Object.assign(bed.bus.active, {
    list: (...args: Parameters<typeof list>) => (isRead ? list(...args) : Promise.resolve([])),
  });
  const second = await join();
  isRead = true;
  return { ...hosts, second };
}

test('a session that its previous host lost after the notes were read is found, too', async () => {
  const { bed, first, second, moving } = await unread({
    appendBounds: { attemptsMax: 1, firstDelayMs: 1, maxDelayMs: 1 },
  });
  // The outcome of the call cannot be recorded, and the first host does not know the session's next owner.
  bed.journal.always = 'lost';
  await bed.time.advance(10_000);
  expect([await noted(bed, moving), first.live]).toEqual([[`${first.id}-1`], 0]);
  bed.journal.always = 'none';
  await bed.time.advance(30_000);
  expect(await writersOf(bed, moving)).toEqual([first.id, second.id]);
  expect((await bed.lines(moving)).at(-1)).toBe('agent_end end_turn');
});

test('a host that leaves a session during an append writes no snapshot: the next owner has the command', async () => {
  const { bed, join, moving } = await crew((line) => line, {
    appendBounds: { attemptsMax: 1, firstDelayMs: 1, maxDelayMs: 1 },
  });
  bed.models.answers = [say('done')];
  await bed.start({}, { session: moving });
  await bed.time.advance(500);
  let fail = () => {};
  const failed = new Promise<void>((resolve) => {
    fail = resolve;
  });
  bed.journal.next = [() => failed.then(() => ({ status: 'ambiguous', cause: 'no answer' }))];
  await bed.send('steer', { body: 'look', mode: 'audit_only' }, { session: moving, id: 'm' });
  await join();
  // The session must move while its append is in flight.
  await bed.time.advance(2_000);
  fail();
  await bed.time.advance(30_000);
  expect(await bed.lines(moving)).toContainEqual(expect.stringContaining('steering_received m'));
});

test('and so is a session whose previous host died', async () => {
  const { bed, first, second, moving } = await unread();
  first.abandon();
  await bed.time.advance(30_000);
  expect(await writersOf(bed, moving)).toEqual([first.id, second.id]);
  expect((await bed.lines(moving)).at(-1)).toBe('agent_end end_turn');
});

// A balancing ends some event loop turns after its last answer, whichever turn brings the news.
test.each([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])(
  'a host that appears while partitions are assigned gets its share: %i turns later',
  async (turns) => {
    const bed = testBed();
    const line = bed.bus.createHostChannel();
    const inbox = bed.bus.createInbox();
    const opened: number[] = [];
    let tell: Parameters<HostChannel['open']>[1]['heartbeat'] = () => {};
    const sayLate = async () => {
      for (let i = 0; i < turns; i++) await null;
      tell({ v: 1, host: 'late', state: 'serving', no: 1 });
    };
    const hostChannel: HostChannel = {
      ...line,
      open: (self, handlers) => {
        tell = handlers.heartbeat;
        return line.open(self, handlers);
      },
    };
    const watched: CommandInbox = {
      ...inbox,
      open: async (handlers, partitions) => {
        await inbox.open(handlers, partitions);
        opened.push(partitions?.length ?? PARTITIONS);
        // The second time nothing of it can be read.
        if (opened.length === 2) void sayLate();
      },
    };
    await bed.host(QUICK, { hostChannel, inbox: watched });
    tell({ v: 1, host: 'early', state: 'serving', no: 1 });
    await bed.time.settle();
    expect(opened.map((share) => Math.round(PARTITIONS / share))).toEqual([1, 2, 3]);
  },
);

/** Another session of the same partition. */
function sameShare(session: string): string {
  for (let i = 1; ; i++) if (partitionOf(`t${i}`) === partitionOf(session)) return `t${i}`;
}

test('a host that cannot subscribe under its next name takes another, until commands reach it by its published name', async () => {
  const opened: string[] = [];
  const said: string[] = [];
  const { bed, join } = await crew((line) => ({
    ...line,
    heartbeat: (beat) => {
      said.push(beat.host);
      line.heartbeat(beat);
    },
    open: async (host, handlers) => {
      if (host === 'host1-1-2') throw new Error('no line');
      await line.open(host, handlers);
      opened.push(host);
    },
  }));
  await join();
  await bed.time.advance(1_000);
  bed.time.hold('host1', bed.time.nowMs + 4_000);
  await bed.time.advance(8_000);
  expect(opened).toEqual(['host1-1-1', 'host1-1-3']);
  expect(said.at(-1)).toBe('host1-1-3');
});
