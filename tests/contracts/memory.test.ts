import {
  createIds,
  createMemoryBus,
  createMemoryPersonas,
  createMemoryRememberedRules,
  createSystemClock,
} from '@coxswain/adapter-memory';
import type { CommandInbox } from '@coxswain/ports';
import { TenantId } from '@coxswain/protocol';
import { afterAll, describe, expect, test } from 'vitest';
import { activeSessionsContract } from './active-sessions-contract.ts';
import { blobsContract } from './blobs-contract.ts';
import { deletionContract } from './deletion-contract.ts';
import { eventually } from './eventually.ts';
import { bytes, freshSession, text } from './fresh-session.ts';
import { hostChannelContract } from './host-channel-contract.ts';
import { inboxContract } from './inbox-contract.ts';
import { journalContract } from './journal-contract.ts';
import { publisherContract } from './publisher-contract.ts';
import { rememberedRulesContract } from './remembered-rules-contract.ts';
import { servedPersonasContract } from './served-personas-contract.ts';
import { snapshotsContract } from './snapshots-contract.ts';
import { timersContract } from './timers-contract.ts';

const bus = createMemoryBus();
afterAll(() => bus.close());
const createInbox = async (): Promise<CommandInbox> => bus.createInbox();

journalContract('memory', () => ({ journal: bus.journal, other: bus.journal }));
inboxContract('memory', () => ({
  createInbox,
  sender: bus.sender,
  publish: async (subject, payload, headers) => void bus.publish(subject, payload, headers),
}));
const rules = createMemoryRememberedRules();
rememberedRulesContract('memory', () => rules);
snapshotsContract('memory', () => bus.snapshots);
blobsContract('memory', () => bus.blobs);
hostChannelContract('memory', () => bus.createHostChannel());
activeSessionsContract('memory', () => bus.active);
timersContract('memory', () => ({ timers: bus.timers, createInbox }));
deletionContract('memory', () => ({ ...bus, other: bus.journal, clock: createSystemClock() }));
servedPersonasContract('memory', () => {
  const personas = createMemoryPersonas();
  return {
    personas,
    serve: async (definition, models) => personas.serve(TenantId.parse('default'), definition, models),
  };
});
publisherContract('memory', () => ({
  publisher: bus.publisher,
  watchDeltas: async (ref, handler) => bus.subscribeDeltas(ref, handler),
  watchReceipts: async (subject, handler) => bus.subscribeReceipts(subject, handler),
}));

describe('a memory bus', () => {
  test('tells watchers of each record after it is durable, in order, until they stop', async () => {
    const ref = freshSession();
    const heard: string[] = [];
    const stop = bus.subscribeEvents(ref, (record) => void heard.push(text(record.bytes)));
    let fence = 0;
    for (const one of ['a', 'b']) {
      const result = await bus.journal.append(ref, bytes(one), fence);
      fence = result.status === 'stored' ? result.fence : -1;
    }
    await eventually('both are heard', () => heard.length === 2);
    stop();
    stop();
    await bus.journal.append(ref, bytes('c'), fence);
    await new Promise((resolve) => setImmediate(resolve));
    expect(heard).toEqual(['a', 'b']);
  });

  test('takes a hostile id of any length', async () => {
    const inbox = bus.createInbox();
    const strays: number[] = [];
    await inbox.open({ notify: () => undefined, unroutable: ({ subject }) => void strays.push(subject.length) });
    bus.publish(`cox.default.session.${'x'.repeat(10_240)}.steer`, bytes('x'));
    await eventually('it has come', () => strays.some((length) => length > 10_240));
    await inbox.close();
  });

  test('ignores subjects that are no commands', () => {
    for (const subject of ['', 'cox', 'cox.default.session.s', 'cox.default.events.s', 'a.b.c.d.e.f']) {
      bus.publish(subject, bytes('x'));
    }
  });

  test('refuses everything once it is closed', async () => {
    const closing = createMemoryBus();
    const ref = freshSession();
    closing.close();
    const closed = { code: 'journal_unavailable' };
    await expect(closing.journal.append(ref, bytes('a'), 0)).rejects.toMatchObject(closed);
    await expect(closing.sender.send(ref, 'steer', bytes('a'))).rejects.toMatchObject(closed);
    await expect(closing.timers.schedule(ref, '1-0', 0, bytes('a'))).rejects.toMatchObject(closed);
    await expect(closing.snapshots.get(ref)).rejects.toMatchObject(closed);
  });
});

describe('the system clock', () => {
  test('wakes a sleeper when the signal aborts, before and during the sleep', async () => {
    const clock = createSystemClock();
    await clock.sleep(2 ** 40, AbortSignal.abort());
    const abort = new AbortController();
    const sleeping = clock.sleep(2 ** 40, abort.signal);
    abort.abort();
    await sleeping;
  });

  test('sleeps at least as long as it was told', async () => {
    const clock = createSystemClock();
    const from = clock.monotonicMs();
    await clock.sleep(20);
    expect(clock.monotonicMs() - from).toBeGreaterThan(19);
  });
});

describe('ids', () => {
  test('are UUIDs of version 7 that hold the time', () => {
    const ids = createIds({ nowMs: () => 0x0190_1234_5678 });
    expect(ids.next()).toMatch(/^01901234-5678-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  test('sort as they were made, in one millisecond and when the clock is set back', () => {
    let nowMs = 1_700_000_000_000;
    const ids = createIds({ nowMs: () => nowMs });
    const made = Array.from({ length: 10_000 }, (_, i) => {
      if (i === 7_000) nowMs -= 5_000;
      return ids.next();
    });
    expect(made).toEqual([...made].sort());
    expect(new Set(made).size).toBe(made.length);
  });
});
