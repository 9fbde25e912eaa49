/**
 * Golden traces: journals that were recorded once and must come out the same for ever, or until someone means them to
 * change. `npm run trace:record` writes them anew; the README beside this file says when.
 */
import {
  decodeRecord,
  EVENT_TYPES,
  HOOK_POINTS,
  isDelivery,
  type JournalRecord,
  SEAM_KINDS,
  SEAMS,
} from '@coxswain/protocol';
import { replayJournal } from '@coxswain/session';
import { type ChartRunner, leafOf, type SessionState, selectChartRunner, turnMachine } from '@coxswain/turn';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BROKEN_TRACES, breakTrace } from './broken-traces.ts';
import { recordTrace } from './record-trace.ts';
import { SCENARIOS, scenariosNamed } from './scenarios/all.ts';
import { SEAM_DELIVERIES, type Work } from './scenarios/seam-deliveries.ts';
import { BROKEN, readTrace, traceBlobs, traceBytes, traceNames } from './trace-files.ts';

const decoded = (name: string): JournalRecord[] => readTrace(name).map((bytes) => decodeRecord(bytes));
const everyRecord = traceNames().flatMap(decoded);
const everyEvent = everyRecord.flatMap((record) => record.events);

describe.each<ChartRunner>(['compiled', 'xstate'])(
  'a golden trace replays byte for byte, by the runner %s:',
  (runner) => {
    let usual: ChartRunner;
    beforeAll(() => {
      usual = selectChartRunner(runner);
    });
    afterAll(() => void selectChartRunner(usual));

    test.each(traceNames())('%s', async (name) => {
      const records = readTrace(name);
      const [first] = decoded(name);
      expect(await replayJournal(records, traceBlobs)).toEqual({
        records: records.length,
        sessionId: first?.session_id,
      });
    });
  },
);

// A machine, a runner or a port that behaves otherwise must be a decision: look at the difference, then record anew.
describe('what is recorded now is what was recorded then:', () => {
  test('each scenario has its trace, and each trace its scenario', () => {
    expect(SCENARIOS.map(({ name }) => name).sort()).toEqual(traceNames());
    expect(BROKEN_TRACES.map(({ name }) => name).sort()).toEqual(traceNames(BROKEN));
  });

  test('only named scenarios are recorded, and unknown names are rejected', () => {
    expect(scenariosNamed(['daemon', 'plain-answer']).map(({ name }) => name)).toEqual(['plain-answer', 'daemon']);
    expect(() => scenariosNamed(['daemon', 'plain-anser'])).toThrow(
      'no scenario has the name plain-anser (did you mean plain-answer?)',
    );
  });

  test.each(SCENARIOS.map((scenario) => [scenario.name, scenario] as const))('%s', async (name, scenario) => {
    const { records, blobs } = await recordTrace(scenario);
    expect(records.map(text)).toEqual(readTrace(name).map(text));
    expect(traceBytes(records).equals(traceBytes(readTrace(name)))).toBe(true);
    for (const [sha256, bytes] of blobs) expect(await traceBlobs.get(sha256)).toEqual(Buffer.from(bytes));
  });
});

describe('the traces show', () => {
  // It takes hundreds of events to come to these bounds: their own tests do.
  const AT_BOUNDS: readonly string[] = ['job_untracked', 'reminder_dropped'];

  test.each(EVENT_TYPES.filter((type) => !AT_BOUNDS.includes(type)))('the event %s', (type) => {
    expect(everyEvent.some((event) => event.type === type)).toBe(true);
  });

  test.each(HOOK_POINTS)('hooks that are asked and answer at %s', (point) => {
    const returned = everyEvent.filter((event) => event.type === 'hook_returned' && event.point === point);
    expect(returned.some((event) => 'verdict' in event)).toBe(true);
  });

  test('every state in which a session waits', () => {
    const shown = new Set(everyRecord.map((record) => leafOf({ value: record.state } as Pick<SessionState, 'value'>)));
    expect(waitingStates().filter((leaf) => !shown.has(leaf))).toEqual([]);
  });

  test('every seam of the catalogue', () => {
    const passed = new Set(everyEvent.map((event) => (event.type === 'loop_checkpoint' ? event.kind : '')));
    expect(SEAM_KINDS.filter((kind) => !passed.has(kind))).toEqual([]);
  });

  test('nothing of the machine that they were recorded on', () => {
    // The fixed clock began at 2030; anything else would be the time of day.
    expect(everyRecord.filter(({ at }) => !at.startsWith('2030-01-01T'))).toEqual([]);
    const naming = /\/(home|tmp|root|Users|private|work)\/|file:\/\//;
    expect(traceNames().filter((name) => naming.test(text(traceBytes(readTrace(name)))))).toEqual([]);
  });
});

describe('every seam that can deliver delivers', () => {
  test('in a trace of its own', () => {
    const delivering = SEAM_DELIVERIES.map(({ delivers }) => delivers);
    expect([...new Set(delivering)].sort()).toEqual([...SEAM_KINDS].sort());
    expect(SEAM_KINDS.filter((kind) => SEAMS[kind].drains.length === 0)).toEqual(['pre_compact', 'post_compact']);
  });

  test.each(SEAM_DELIVERIES.map((scenario) => [scenario.name, scenario] as const))('%s', async (name, scenario) => {
    const { delivers, work } = scenario;
    const queued = decoded(name);
    expect(deliveriesAt(delivers, queued)).toBeGreaterThan(0);
    expect(workOf(queued)).toEqual(work.queued);
    // The control: the same run with nothing queued. No seam delivers, and no work is done but the script's own.
    const control = (await recordTrace(scenario, false)).records.map((bytes) => decodeRecord(bytes));
    expect(SEAM_KINDS.filter((kind) => deliveriesAt(kind, control) > 0)).toEqual([]);
    expect(control.flatMap(({ events }) => events).filter(isDelivery)).toEqual([]);
    expect(workOf(control)).toEqual(work.control);
  });

  test('without more work where the run would have asked the model in any case', () => {
    const free = SEAM_DELIVERIES.filter(({ work }) => work.queued.answers === work.control.answers);
    expect(new Set(free.map(({ delivers }) => delivers))).toEqual(
      new Set([
        'iteration_start',
        'pre_compact',
        'post_compact',
        'pre_tool_dispatch',
        'post_tool_dispatch',
        'loop_exit',
      ]),
    );
  });
});

describe('a broken trace is refused, by name and place:', () => {
  test.each(BROKEN_TRACES.map((broken) => [broken.name, broken] as const))('%s', async (name, broken) => {
    const records = readTrace(name, BROKEN);
    expect(records.map(text)).toEqual(breakTrace(broken).map(text));
    let read = 0;
    const counted = function* () {
      for (const bytes of records) {
        read++;
        yield bytes;
      }
    };
    const error = await replayJournal(counted(), traceBlobs).then(
      () => null,
      (thrown: Error) => thrown,
    );
    const { code, at, path } = broken;
    expect(error).toMatchObject({
      code,
      ...(code === 'replay_diverged' ? { n: at } : {}),
      ...(path === undefined ? {} : { path }),
    });
    // It stops there: what follows a record that cannot be trusted is not looked at.
    expect(read).toBe(at);
  });

  test('and it was the one thing wrong with it', async () => {
    for (const { of } of BROKEN_TRACES) await replayJournal(readTrace(of), traceBlobs);
  });
});

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8');
}

function deliveriesAt(kind: string, records: readonly JournalRecord[]): number {
  let delivered = 0;
  for (const event of records.flatMap((record) => record.events))
    if (event.type === 'loop_checkpoint' && event.kind === kind) delivered += event.delivered + event.inbox_delivered;
  return delivered;
}

function workOf(records: readonly JournalRecord[]): Work {
  const events = records.flatMap((record) => record.events);
  return {
    answers: events.filter((event) => event.type === 'message_complete').length,
    calls: events.filter((event) => event.type === 'call_started').length,
  };
}

function waitingStates(): string[] {
  return Object.values(turnMachine.states).flatMap((top) => {
    const children = Object.values(top.states);
    if (children.length === 0) return [top.key];
    return children.filter((child) => child.tags.includes('wait')).map((child) => `${top.key}.${child.key}`);
  });
}
