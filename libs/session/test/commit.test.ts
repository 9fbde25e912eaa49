/**
 * The settlement of an append: RUNNER-1, RUNNER-9 and RUNNER-10.
 */
import type { AppendResult } from '@coxswain/ports';
import { describe, expect, test } from 'vitest';
import { appendUntilKnown, sha256Hex } from '../src/mod.ts';
import { ask, call, say } from './fake-model.ts';
import { taking } from './fake-tools.ts';
import type { AppendFault, FaultyJournal, Tried } from './faulty-journal.ts';
import { recordOf, refOf, testBed } from './test-bed.ts';

const BOUNDS = { attemptsMax: 5, firstDelayMs: 10, maxDelayMs: 20 };
const sealed = (text: string) => {
  const bytes = Buffer.from(text, 'utf8');
  return { bytes, hash: sha256Hex(bytes) };
};

describe('one append', () => {
  async function settle(faults: readonly AppendFault[], prepare: (journal: FaultyJournal) => void = () => {}) {
    const bed = testBed();
    bed.journal.next = [...faults];
    prepare(bed.journal);
    let dropped = false;
    const mine = sealed('{"attempt":"me"}');
    const result = appendUntilKnown(bed.journal, bed.time.clock(), refOf('plain'), mine, 0, () => dropped, BOUNDS);
    await bed.time.advance(10_000);
    const stored: string[] = [];
    for await (const record of bed.bus.journal.read(refOf('plain'))) stored.push(Buffer.from(record.bytes).toString());
    // This journal has no record of a session, so there is nothing to replay.
    Object.assign(bed, { end: async () => bed.bus.close() });
    return { result: await result, stored, tried: bed.journal.tried, drop: () => (dropped = true) };
  }
  const foreign: AppendFault = async (append, { ref, fence }) => {
    await (append as () => Promise<AppendResult>)();
    return { status: 'refused', ref, fence } as unknown as AppendResult;
  };

  test('a stored append is done', async () => {
    expect(await settle([])).toMatchObject({ result: { status: 'stored', fence: 1 }, stored: ['{"attempt":"me"}'] });
  });

  test('RUNNER-10: ambiguous is sent again with the identical bytes and the same fence, and nothing else', async () => {
    const { result, stored, tried } = await settle(['lost', 'lost', 'none']);
    expect(result.status).toBe('stored');
    expect(stored).toHaveLength(1);
    expect(new Set(tried.map(({ bytes, fence }) => `${fence} ${Buffer.from(bytes).toString()}`)).size).toBe(1);
    expect(tried).toHaveLength(3);
  });

  test('an append refused because of its own first attempt counts as stored, once', async () => {
    expect(await settle(['unanswered'])).toMatchObject({
      result: { status: 'stored', fence: 1 },
      stored: ['{"attempt":"me"}'],
      tried: [{ fence: 0 }, { fence: 0 }],
    });
  });

  test('an append refused by a record with the same bytes counts as stored', async () => {
    expect(await settle([foreign])).toMatchObject({ result: { status: 'stored', fence: 1 } });
  });

  test('RUNNER-10: refused with other bytes standing first: foreign, and who wrote them', async () => {
    const other: AppendFault = async (_append, { ref, fence }: Tried) => {
      await journalOf.append(ref, sealed('{"attempt":"other"}').bytes, fence);
      return { status: 'refused' };
    };
    let journalOf = null as unknown as FaultyJournal;
    const { result, stored } = await settle([other], (journal) => {
      journalOf = journal;
    });
    expect(result).toEqual({ status: 'foreign', attempt: 'other' });
    expect(stored).toEqual(['{"attempt":"other"}']);
  });

  test('RUNNER-8: an append without an answer ends as unavailable, after a bounded number of attempts', async () => {
    const { result, tried } = await settle(Array(9).fill('lost'));
    expect(result).toEqual({ status: 'unavailable', cause: 'no answer' });
    expect(tried).toHaveLength(BOUNDS.attemptsMax);
  });

  test('RUNNER-10: a session that was left while an append was waited for is not appended to again', async () => {
    const bed = testBed();
    bed.journal.always = 'lost';
    let dropped = false;
    const result = appendUntilKnown(
      bed.journal,
      bed.time.clock(),
      refOf('plain'),
      sealed('{}'),
      0,
      () => dropped,
      BOUNDS,
    );
    await bed.time.advance(1);
    expect(bed.journal.tried).toHaveLength(1);
    dropped = true;
    await bed.time.advance(10_000);
    expect(await result).toMatchObject({ status: 'unavailable' });
    expect(bed.journal.tried).toHaveLength(1);
  });
});

describe('a running session', () => {
  const bounds = { appendBounds: BOUNDS };

  test('RUNNER-10: a foreign record makes the host abort its effects and append nothing more', async () => {
    const bed = testBed();
    bed.tools = { slow: { run: taking(60_000) } };
    bed.models.answers = [ask(call('c1', 'slow')), say('done')];
    const first = await bed.host(bounds);
    await bed.start();
    const second = await bed.rival(bounds);
    // The second host has claimed the session; the first one finds out by its append.
    const before = bed.journal.tried.length;
    await bed.send('steer', 'go on');
    await bed.time.advance(120_000);
    const writers = (await bed.records()).map((record) => record.attempt);
    const tried = bed.journal.tried.slice(before).map(({ bytes }) => recordOf(bytes).attempt);
    // Exactly one append of the first host was tried after the other's record.
    expect(writers.lastIndexOf(first.id)).toBeLessThan(writers.indexOf(second.id));
    expect(tried.filter((attempt) => attempt === first.id)).toHaveLength(1);
    expect(bed.toolSource.runs[0]).toMatchObject({ callId: 'c1', aborted: true });
    const log = bed.log.filter((line) => line.message.startsWith('session released'));
    expect(log).toMatchObject([{ fields: { reason: 'foreign_writer' } }]);
  });

  test('RUNNER-9, RUNNER-10: an append that cannot be settled drops the session; after another claim it has a new epoch and runs no settled call again', async () => {
    const bed = testBed();
    bed.tools = { count: { run: taking(100, 'counted') } };
    bed.models.answers = [ask(call('c1', 'count')), say('done')];
    await bed.host(bounds);
    await bed.start();
    bed.journal.next = Array(BOUNDS.attemptsMax).fill('lost');
    await bed.time.advance(10_000);
    expect(bed.toolSource.runs).toHaveLength(1);
    expect(await bed.lines('s1', 4)).toEqual([
      'owned 2',
      'call_ended c1 ok',
      'turn_end 1',
      'turn_start 2',
      'message_complete "done"',
      'turn_end 2',
      'tools_closed',
      'agent_end end_turn',
    ]);
    const [outcome] = (await bed.records()).filter((record) => record.input.type === 'call_outcome');
    expect(outcome?.epoch).toBe(2);
  });

  test('RUNNER-10: its own append that arrives late is not another host: the session continues', async () => {
    const bed = testBed();
    bed.tools = { count: { run: taking(100, 'counted') } };
    bed.models.answers = [ask(call('c1', 'count')), say('done')];
    await bed.host(bounds);
    await bed.start();
    const late: AppendFault = async (append) => {
      // The request is in flight all this time, and arrives just before the next runner's first append.
      bed.journal.next = [
        ...Array(BOUNDS.attemptsMax - 1).fill('lost'),
        async (appendOwned: () => Promise<AppendResult>) => {
          await append();
          return appendOwned();
        },
      ];
      return { status: 'ambiguous', cause: 'no answer' };
    };
    bed.journal.next = [late];
    await bed.time.advance(30_000);
    expect(bed.log.some((line) => 'reason' in line.fields && line.fields.reason === 'late_append')).toBe(true);
    expect(bed.toolSource.runs).toHaveLength(1);
    const lines = await bed.lines();
    expect(lines.filter((line) => line.startsWith('call_ended'))).toEqual(['call_ended c1 ok']);
    expect(lines.at(-1)).toBe('agent_end end_turn');
  });

  test('RUNNER-10: while the host waits to try again, a redelivered command does not leave the session without its effects', async () => {
    const bed = testBed();
    bed.tools = { slow: { run: taking(200) } };
    bed.models.answers = [ask(call('c1', 'slow')), say('done')];
    await bed.host({ appendBounds: { attemptsMax: 1, firstDelayMs: 1, maxDelayMs: 1 } });
    await bed.start();
    // The record of the steer is stored without an answer. Its delivery stays unacknowledged, and is repeated while the
    // host waits for its third attempt.
    bed.journal.next = ['unanswered', 'lost', 'lost'];
    await bed.send('steer', 'hello', { id: 'st' });
    await bed.time.advance(60_000);
    const lines = await bed.lines();
    expect(lines.filter((line) => line.startsWith('steering_received'))).toEqual(['steering_received st finish_step']);
    expect(lines.at(-1)).toBe('agent_end end_turn');
  });

  test('RUNNER-1: an append that the adapter throws at is an append without an answer: nothing is lost', async () => {
    const bed = testBed();
    await bed.host(bounds);
    bed.journal.next = ['throws', 'throws'];
    await bed.start();
    await bed.start({}, { session: 's2' });
    await bed.time.advance(60_000);
    for (const session of ['s1', 's2']) expect((await bed.lines(session)).at(-1)).toBe('agent_end end_turn');
  });
});
