/** Journals, read back from the bus and held against what must be true of every one. */
import { isDelivery, type JournalRecord, type SessionEvent } from '@coxswain/protocol';
import { replayJournal } from '@coxswain/session';
import { expect } from 'vitest';
import type { TestBus } from './bus.ts';
import { until } from './until.ts';

const END_PATIENCE_MS = 120_000;

/** One event, with the record that holds it. */
export type JournalEvent = SessionEvent & { readonly n: number };

/** A journal as it is stored. */
export interface ReadJournal {
  readonly bytes: readonly Uint8Array[];
  readonly records: readonly JournalRecord[];
  readonly events: readonly JournalEvent[];
  /** Events of one type, in order. */
  of<T extends SessionEvent['type']>(type: T): readonly (Extract<SessionEvent, { type: T }> & { readonly n: number })[];
}

/** Reads a session's journal; empty for a session that does not exist yet. */
export async function journalOf(bus: Pick<TestBus, 'client'>, sessionId: string): Promise<ReadJournal> {
  const bytes: Uint8Array[] = [];
  const records: JournalRecord[] = [];
  const session = bus.client.session(sessionId);
  const journal = (await session.lastNumber()) === 0 ? [] : session.journal();
  for await (const stored of journal) {
    // A connection hands on Buffers and plain arrays, as its reads fall: alike, they can be compared.
    bytes.push(Uint8Array.from(stored.bytes));
    records.push(stored.record);
  }
  return toReadJournal(bytes, records);
}

/** Bytes and the records that they hold, with the events in order. */
export function toReadJournal(bytes: readonly Uint8Array[], records: readonly JournalRecord[]): ReadJournal {
  const events = records.flatMap(({ n, events }) => events.map((event) => ({ ...event, n })));
  return {
    bytes,
    records,
    events,
    of: <T extends SessionEvent['type']>(type: T) =>
      events.filter((event) => event.type === type) as unknown as (Extract<SessionEvent, { type: T }> & {
        readonly n: number;
      })[],
  };
}

/** Waits for an event of a session's journal. */
export function eventOf<T extends SessionEvent['type']>(
  bus: Pick<TestBus, 'client'>,
  sessionId: string,
  type: T,
  fits: (event: Extract<SessionEvent, { type: T }>) => boolean = () => true,
): Promise<Extract<SessionEvent, { type: T }> & { readonly n: number }> {
  return until(`${type} of ${sessionId}`, async () => (await journalOf(bus, sessionId)).of(type).find(fits));
}

/** Waits for the end of the newest run, which is the `run`th, and returns the journal. */
export async function endOf(bus: Pick<TestBus, 'client'>, sessionId: string, run = 1): Promise<ReadJournal> {
  return until(
    `the end of run ${run} of ${sessionId}`,
    async () => {
      const newest = await bus.client.session(sessionId).newest();
      if (newest === null || typeof newest.state !== 'string' || !/^(stopped|failed)$/.test(newest.state)) return null;
      const journal = await journalOf(bus, sessionId);
      return journal.of('agent_end').length >= run ? journal : null;
    },
    END_PATIENCE_MS,
  ).catch(async (error: Error) => {
    const { records } = await journalOf(bus, sessionId);
    const last = records.slice(-3).map((record) => JSON.stringify(record).slice(0, 3_000));
    throw new Error(`${error.message}; its last records:\n${last.join('\n')}`);
  });
}

/** Replays one journal: every record must come out byte for byte. */
export async function expectReplays(
  bus: Pick<TestBus, 'client'>,
  { bytes }: Pick<ReadJournal, 'bytes'>,
): Promise<void> {
  const replayed = await replayJournal(bytes, { get: (sha256) => bus.client.blob(sha256) });
  expect(replayed.records).toBe(bytes.length);
}

/** Replays every journal of a bus and holds it against {@link expectSound}, but for those that are deleted. @returns how many there were. */
export async function expectAllSound(bus: Pick<TestBus, 'client'>): Promise<number> {
  let sessions = 0;
  for await (const { sessionId } of bus.client.sessions()) {
    const journal = await journalOf(bus, sessionId);
    expectSound(journal);
    await expectReplays(bus, journal);
    sessions++;
  }
  return sessions;
}

/** What holds of any journal at any moment: dense numbers, one end per run, one result per call. */
export function expectSound({ records, events, of }: ReadJournal): void {
  expect(records.map(({ n }) => n)).toEqual(records.map((_, index) => index + 1));
  const runs = of('agent_start').length;
  const ends = of('agent_end').map(({ run }) => run);
  expect(new Set(ends).size).toBe(ends.length);
  expect(runs - ends.length).toBeLessThanOrEqual(1);

  // Providers number calls anew in each answer if they like: a call is known by its turn and its id.
  const open = new Map<string, number>();
  let batch = 0;
  for (const event of events) {
    if (event.type === 'message_complete') {
      batch += 1;
      for (const part of event.message.content) if (part.type === 'call') open.set(`${batch} ${part.call_id}`, 0);
    }
    if (event.type === 'call_ended') {
      const key = `${batch} ${event.call_id}`;
      open.set(key, (open.get(key) ?? Number.NaN) + 1);
    }
  }
  for (const [call, results] of open) {
    const last = call.startsWith(`${batch} `);
    expect(results, `results of call ${call}`).toBeLessThanOrEqual(1);
    if (!last) expect(results, `results of call ${call}`).toBe(1);
  }

  const received = ['steering_received', 'reminder_injected', 'followup_received'] as const;
  const ids = received.flatMap((type) => of(type).map(({ command_id }) => command_id));
  expect(new Set(ids).size, 'each accepted once').toBe(ids.length);
  // What the runtime and the surroundings say, of a cancelled call for one, is delivered without having been sent.
  const sent = events.flatMap((event) => (isDelivery(event) ? [event.command_id] : []));
  expect(new Set(sent).size, 'each delivered once').toBe(sent.length);
  for (const id of sent) expect(ids).toContain(id);
}
