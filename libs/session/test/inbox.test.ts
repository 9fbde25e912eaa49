/**
 * Commands: read in stream order, consumed by their record, acknowledged after it. RUNNER-7.
 */
import type { CommandInbox, InboxHandlers } from '@coxswain/ports';
import { positionalCommandId } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { InboxReader } from '../src/runner/inbox-reader.ts';
import { ask, call, say } from './fake-model.ts';
import { ASKING, refOf, type TestBed, testBed } from './test-bed.ts';

const QUIET = { debug() {}, info() {}, warn() {}, error() {} };

/** An inbox that notes acknowledged deliveries, with the length of the journal at that time. */
function watched(bed: TestBed): { inbox: CommandInbox; acks: { seq: number; records: number }[] } {
  const inner = bed.bus.createInbox();
  const acks: { seq: number; records: number }[] = [];
  const watch = (handlers: InboxHandlers): InboxHandlers => ({
    ...handlers,
    notify: ({ ref, seq, ack }) =>
      handlers.notify({
        ref,
        seq,
        ack: () => {
          acks.push({ seq, records: bed.journal.tried.length });
          ack();
        },
      }),
  });
  return { acks, inbox: { ...inner, open: (handlers, partitions) => inner.open(watch(handlers), partitions) } };
}

test('RUNNER-7: the record of a command contains its position, and its delivery is acknowledged after it', async () => {
  const bed = testBed();
  const { inbox, acks } = watched(bed);
  await bed.host({}, { inbox });
  await bed.start();
  const [first] = await bed.records();
  expect(first?.cursor).toEqual({ ...inbox.incarnation, seq: 1 });
  expect(acks[0]).toMatchObject({ seq: 1 });
  expect(acks[0]?.records).toBeGreaterThanOrEqual(1);
});

test('RUNNER-7: only records of commands have a position', async () => {
  const bed = testBed();
  await bed.host();
  await bed.start();
  for (const record of await bed.records()) {
    expect(record.cursor === undefined, `record ${record.n}`).toBe(record.input.type !== 'command');
  }
});

test('RUNNER-7: what was not acknowledged before a crash is acknowledged by the next host, and not handled again', async () => {
  const bed = testBed();
  // The first host never acknowledges anything.
  const inner = bed.bus.createInbox();
  const deaf: CommandInbox = {
    ...inner,
    open: (handlers, partitions) =>
      inner.open(
        { ...handlers, notify: (notification) => handlers.notify({ ...notification, ack: () => {} }) },
        partitions,
      ),
  };
  bed.models.answers = [say('done', { delayMs: 1_000 })];
  const first = await bed.host({}, { inbox: deaf });
  await bed.start();
  await bed.send('steer', 'go', { id: 'st' });
  first.abandon();
  await inner.close();
  const { inbox, acks } = watched(bed);
  await bed.host({}, { inbox });
  await bed.time.advance(20_000);
  expect(acks.map(({ seq }) => seq)).toEqual([1, 2]);
  const lines = await bed.lines();
  expect(lines.filter((line) => line.startsWith('steering_received'))).toHaveLength(1);
  expect(lines.filter((line) => line.startsWith('prompt_received'))).toHaveLength(1);
});

test('RUNNER-7: deliveries to a frozen host are read by the next host without a notification', async () => {
  const bed = testBed();
  const inner = bed.bus.createInbox();
  let standsStill = false;
  const standing: CommandInbox = {
    ...inner,
    open: (handlers, partitions) =>
      inner.open({ ...handlers, notify: (notification) => standsStill || handlers.notify(notification) }, partitions),
  };
  bed.models.answers = [say('done', { delayMs: 60_000 })];
  const first = await bed.host({}, { inbox: standing });
  await bed.start();
  standsStill = true;
  await bed.send('steer', 'one', { id: 'a' });
  await bed.send('steer', 'two', { id: 'b' });
  first.abandon();
  // Deliveries in flight are not delivered to another host.
  const { incarnation, read } = bed.bus.createInbox();
  await bed.host({}, { inbox: { incarnation, read, open: async () => {}, close: async () => {} } });
  const received = (await bed.lines()).filter((line) => /^(owned|steering_received)/.test(line));
  expect(received.map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual([
    expect.stringMatching(/^owned/),
    'steering_received a',
    'steering_received b',
  ]);
});

test('RUNNER-7: commands are handled in stream order, however their deliveries come', async () => {
  const bed = testBed();
  const inner = bed.bus.createInbox();
  // Deliveries arrive backwards, and twice.
  const shuffled: CommandInbox = {
    ...inner,
    open: (handlers, partitions) => {
      const held: Parameters<InboxHandlers['notify']>[0][] = [];
      const ring: InboxHandlers['notify'] = (notification) => {
        held.push(notification);
        if (held.length < 4) return;
        for (const one of [...held].reverse()) handlers.notify(one);
        for (const one of held.splice(0)) handlers.notify(one);
      };
      return inner.open({ ...handlers, notify: ring }, partitions);
    },
  };
  bed.models.answers = [say('done', { delayMs: 1_000 })];
  await bed.host({}, { inbox: shuffled });
  await bed.start();
  for (const id of ['a', 'b', 'c']) await bed.send('steer', `do ${id}`, { id });
  await bed.time.advance(10_000);
  const received = (await bed.lines()).filter((line) => line.startsWith('steering_received'));
  expect(received).toEqual(['a', 'b', 'c'].map((id) => `steering_received ${id} finish_step`));
});

test('RUNNER-7: a delivery of a recorded command is acknowledged without reading the inbox again', async () => {
  const bed = testBed();
  const inner = bed.bus.createInbox();
  let reads = 0;
  let again = () => {};
  const inbox: CommandInbox = {
    ...inner,
    open: (handlers, partitions) =>
      inner.open(
        {
          ...handlers,
          notify: (notification) => {
            again = () => handlers.notify(notification);
            handlers.notify(notification);
          },
        },
        partitions,
      ),
    read: (...asked) => {
      reads++;
      return inner.read(...asked);
    },
  };
  await bed.host({}, { inbox });
  await bed.start();
  const before = [reads, (await bed.bytes()).length];
  again();
  await bed.time.settle();
  expect([reads, (await bed.bytes()).length]).toEqual(before);
  expect(before[0]).toBe(1);
});

test('RUNNER-7: a repeated command changes nothing, and its sender gets the first answer', async () => {
  const bed = testBed();
  await bed.host();
  await bed.start();
  await bed.send('prompt', 'again', { id: 'p1' });
  const before = await bed.bytes();
  await bed.send('prompt', 'again', { id: 'p1' });
  await bed.send('cancel', {}, { id: 'c1' });
  await bed.send('cancel', {}, { id: 'c1' });
  expect(bed.told('p1')).toEqual(['accepted', 'accepted']);
  expect(bed.told('c1')).toEqual(['rejected not_running', 'rejected not_running']);
  expect((await bed.bytes()).length).toBe(before.length + 1);
});

test('RUNNER-7: simultaneous repetitions are answered once each, even if reading one finds the next ones', async () => {
  const bed = testBed();
  const inner = bed.bus.createInbox();
  await bed.host({}, { inbox: { ...inner, read: (ref, after) => inner.read(ref, after, Number.MAX_SAFE_INTEGER) } });
  await bed.start({}, { id: 'start-1' });
  await Promise.all([1, 2, 3].map(() => bed.start({}, { id: 'start-1' })));
  expect(bed.told('start-1')).toEqual(Array(4).fill('accepted'));
});

test('RUNNER-7: a repetition is known also after a restart', async () => {
  const bed = testBed();
  const first = await bed.host();
  await bed.start({}, { id: 'start-1' });
  await first.stop();
  await bed.host();
  await bed.start({}, { id: 'start-1' });
  expect((await bed.lines()).filter((line) => line.startsWith('prompt_received'))).toHaveLength(1);
  expect(bed.told('start-1').at(-1)).toBe('accepted');
});

test('RUNNER-7: another incarnation of a command stream starts at its own first position; ids prevent duplicates', async () => {
  const bed = testBed();
  await bed.host();
  await bed.start({}, { id: 'start-1' });
  await bed.send('prompt', 'again', { id: 'p1' });
  const inner = bed.bus.createInbox();
  const reborn: CommandInbox = {
    incarnation: { ...inner.incarnation, created: '1' },
    open: async (handlers) => {
      handlers.notify({ ref: refOf(), seq: 2, ack: () => {} });
    },
    read: async () =>
      ['p1', 'p2'].map((commandId, index) => ({
        ref: refOf(),
        verb: 'prompt',
        payload: Buffer.from('once more'),
        seq: index + 1,
        storedAtMs: 0,
        commandId,
      })),
    close: async () => {},
  };
  await bed.rival({}, { inbox: reborn });
  const prompts = (await bed.records()).filter((record) => record.events[0]?.type === 'prompt_received');
  expect(prompts.map((record) => record.cursor)).toMatchObject([{ seq: 1 }, { seq: 2 }, { created: '1', seq: 2 }]);
});

test('a command without an id is identified by its position in the stream, as in its receipt', async () => {
  const bed = testBed();
  await bed.host();
  await bed.start({}, { id: '' });
  const { incarnation } = bed.bus.createInbox();
  expect(await bed.eventsOf('prompt_received')).toMatchObject([{ command_id: positionalCommandId(incarnation, 1) }]);
  const sent = await bed.bus.sender.send(refOf(), 'prompt', Buffer.from('again'));
  await bed.time.settle();
  expect((await bed.eventsOf('prompt_received'))[1]?.command_id).toBe(sent.commandId);
});

test('a command for an unknown session gets its receipt and its ack, and leaves no record', async () => {
  const bed = testBed();
  const { inbox, acks } = watched(bed);
  await bed.host({}, { inbox });
  const id = await bed.send('steer', 'hello', { session: 'nobody' });
  expect(bed.told(id)).toEqual(['rejected session_not_found']);
  expect(bed.receipts[0]).toMatchObject({ session_id: 'nobody', command_id: id });
  expect(bed.receipts[0]).not.toHaveProperty('n');
  expect(acks).toEqual([{ seq: 1, records: 0 }]);
  expect(await bed.bytes('nobody')).toEqual([]);
  // A command that was rejected while the session did not exist does not block it later.
  await bed.start({}, { session: 'nobody' });
  expect((await bed.lines('nobody'))[0]).toBe('prompt_received run 1');
});

test('RUNNER-7: a host that once found a session unknown reads again before it says so: another host may have started it since', async () => {
  const bed = testBed();
  bed.models.answers = [say('done', { delayMs: 1_000 })];
  const inbox = bed.bus.createInbox();
  let handlers: InboxHandlers | null = null;
  const open: CommandInbox['open'] = (given, partitions) => {
    handlers = given;
    return inbox.open(given, partitions);
  };
  await bed.host({}, { inbox: { ...inbox, open } });
  await bed.send('steer', 'too early', { id: 'early' });
  await inbox.close();
  const second = await bed.host();
  await bed.start();
  // The partition moves back; the first host still has the session in memory as unknown.
  second.abandon();
  await inbox.open(handlers as unknown as InboxHandlers);
  await bed.send('steer', 'in time', { id: 'timely' });
  await bed.time.advance(10_000);
  expect(bed.told('early')).toEqual(['rejected session_not_found']);
  expect(bed.told('timely')).toEqual(['accepted', 'delivered iteration_end']);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('RUNNER-7: what has rung and cannot be found yet is not acknowledged, and is taken when it rings again', async () => {
  const bed = testBed();
  const { inbox, acks } = watched(bed);
  let isBehind = false;
  let ringAgain = () => {};
  const lagging: CommandInbox = {
    ...inbox,
    open: (handlers, partitions) =>
      inbox.open(
        {
          ...handlers,
          notify: (notification) => {
            ringAgain = () => handlers.notify(notification);
            ringAgain();
          },
        },
        partitions,
      ),
    // The notifying server is ahead of the one that is read.
    read: async (...asked) => (isBehind ? [] : inbox.read(...asked)),
  };
  bed.models.answers = [say('one', { delayMs: 1_000 })];
  await bed.host({}, { inbox: lagging });
  await bed.start();
  isBehind = true;
  const id = await bed.send('steer', 'think');
  expect([acks.map(({ seq }) => seq), bed.told(id)]).toEqual([[1], []]);
  isBehind = false;
  ringAgain();
  await bed.time.settle();
  expect([acks.map(({ seq }) => seq), bed.told(id)]).toEqual([[1, 2], ['accepted']]);
});

test.each(['catch-up', 'read of notified commands', 'command'])(
  'RUNNER-7: after a %s that failed, the next read catches up again',
  async (failing) => {
    const bed = testBed();
    const commands = [1, 2].map((seq) => ({
      ref: refOf(),
      verb: 'steer',
      payload: Buffer.from('go on'),
      seq,
      storedAtMs: 0,
      commandId: `c${seq}`,
    }));
    let isFailing = true;
    const read: CommandInbox['read'] = async (_ref, after, until) => {
      if (isFailing && failing === (until === null ? 'catch-up' : 'read of notified commands'))
        throw new Error('no leader');
      return commands.filter(({ seq }) => seq > after);
    };
    const reader = new InboxReader({ ...bed.bus.createInbox(), read }, refOf(), QUIET);
    const taken: number[] = [];
    const take = async ({ seq }: { readonly seq: number }) => {
      if (isFailing && failing === 'command') return false;
      taken.push(seq);
      return true;
    };
    reader.catchUp();
    // The server that is read does not have the command of this notification yet.
    if (failing !== 'command') reader.notify({ ref: refOf(), seq: 3, ack: () => {} });
    await reader.read(undefined, take);
    expect(taken).toEqual([]);
    isFailing = false;
    await reader.read(undefined, take);
    expect(taken).toEqual([1, 2]);
  },
);

test('RUNNER-8: while a command cannot be judged, its repeated deliveries are kept as one, the newest that can be acknowledged', async () => {
  const bed = testBed();
  const command = { ref: refOf(), verb: 'steer', payload: Buffer.from('go on'), seq: 1, storedAtMs: 0 };
  const reader = new InboxReader({ ...bed.bus.createInbox(), read: async () => [command] }, refOf(), QUIET);
  const acks: string[] = [];
  for (const delivery of ['first', 'second', 'third']) {
    reader.notify({ ref: refOf(), seq: 1, ack: () => acks.push(delivery) });
    // Another host has passed it on.
    reader.notify({ ref: refOf(), seq: 1 });
    await reader.read(undefined, async () => false);
  }
  await reader.read(undefined, async () => true);
  expect(acks).toEqual(['third']);
});

test('an unavailable inbox is read at the next delivery', async () => {
  const bed = testBed();
  const inner = bed.bus.createInbox();
  let failures = 2;
  const flaky: CommandInbox = {
    ...inner,
    read: async (...asked) => {
      if (failures-- > 0) throw new Error('no leader');
      return inner.read(...asked);
    },
  };
  await bed.host({}, { inbox: flaky });
  await bed.start();
  expect(await bed.bytes()).toEqual([]);
  await bed.time.advance(10_000);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('RUNNER-8: a runner holds only the deliveries that the inbox allows in flight: 1,000 commands at once', async () => {
  const bed = testBed();
  bed.models.answers = [say('done', { delayMs: 600_000 })];
  await bed.host();
  await bed.start();
  for (let i = 0; i < 1_001; i++) bed.bus.publish('cox.default.session.s1.steer', Buffer.from(`do ${i}`));
  await bed.time.advance(60_000);
  const events = await bed.events();
  expect(events.filter((event) => event.type === 'steering_received')).toHaveLength(1_000);
  expect(events.at(-1)).toMatchObject({ type: 'command_rejected', code: 'too_many_pending' });
});

describe('approvals', () => {
  test('a repeated decision is applied once', async () => {
    const bed = testBed();
    bed.tools = { ask: {} };
    bed.models.answers = [ask(call('c1', 'ask')), say('done')];
    await bed.host();
    await bed.start({ permissions: ASKING });
    const first = await bed.send('approve', { call_id: 'c1', decision: 'deny' }, { id: 'a1' });
    const second = await bed.send('approve', { call_id: 'c1', decision: 'allow' }, { id: 'a2' });
    expect(bed.told(first)).toEqual(['accepted']);
    expect(bed.told(second)[0]).toMatch(/^rejected/);
    expect(bed.toolSource.runs).toEqual([]);
  });

  test('edited arguments are checked by the schema, and the error names the field', async () => {
    const bed = testBed();
    bed.tools = {
      ask: { schema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] } },
    };
    bed.models.answers = [ask(call('c1', 'ask', { path: 'a' })), say('done')];
    await bed.host();
    await bed.start({ permissions: ASKING });
    const bad = await bed.send('approve', { call_id: 'c1', decision: 'allow', args: { path: 7 } });
    expect(bed.receipts.filter((receipt) => receipt.command_id === bad)).toMatchObject([
      { stage: 'rejected', code: 'invalid_arguments', field: 'args' },
    ]);
    await bed.send('approve', { call_id: 'c1', decision: 'allow', args: { path: 'b' } });
    expect(bed.toolSource.runs).toMatchObject([{ args: { path: 'b' } }]);
  });
});

test('RUNNER-7: a command that a damaged replica steps over is read again before a later one is taken', async () => {
  const bed = testBed();
  const inner = bed.bus.createInbox();
  let held: (() => void)[] | null = null;
  const stepped: number[] = [];
  const inbox: CommandInbox = {
    ...inner,
    // Both notifications come at once.
    open: (handlers, partitions) =>
      inner.open(
        {
          ...handlers,
          notify: (notification) =>
            held ? void held.push(() => handlers.notify(notification)) : handlers.notify(notification),
        },
        partitions,
      ),
    async read(ref, afterSeq, untilSeq) {
      const commands = await inner.read(ref, afterSeq, untilSeq);
      if (commands.length < 2 || stepped.length > 0) return commands;
      stepped.push(commands[0]?.seq ?? 0);
      return commands.slice(1);
    },
  };
  bed.models.answers = [say('one', { delayMs: 60_000 })];
  await bed.host({}, { inbox });
  await bed.start();
  held = [];
  await bed.send('steer', 'first', { id: 'st-1' });
  await bed.send('steer', 'second', { id: 'st-2' });
  for (const ring of held) ring();
  await bed.time.settle();
  expect(stepped).toHaveLength(1);
  expect(bed.told('st-1')).toEqual(['accepted']);
  expect(bed.told('st-2')).toEqual(['accepted']);
});
