/** Steps as the inspection tells them, and going through them. */
import { SessionInspector } from '@coxswain/session';
import { applyEvent, emptyState, leafOf } from '@coxswain/turn';
import { describe, expect, test } from 'vitest';
import { journal, journalNames } from '../../../tests/traces/golden-journals.ts';
import { InspectedSteps } from '../src/session/inspected-steps.ts';
import type { ChartStep } from '../src/statechart/chart-path.ts';
import { momentAt, positionAfter, recordAt } from '../src/statechart/step-cursor.ts';

/** What the gateway sends, as text. */
function sent(name: string, from = 1): string[] {
  const records = journal(name);
  const inspector = new SessionInspector(records[0]?.session_id ?? '', { from, context: false });
  return records.flatMap((record) => [...inspector.take(record)].map((message) => JSON.stringify(message)));
}

test.each(journalNames)('of %s they are the machine’s own, all of them', (name) => {
  const inspected = new InspectedSteps();
  for (const text of sent(name)) inspected.take(text);
  const { steps, upTo, state: last } = inspected.received;
  // Guards that hold at once lead on: of such a way the machine alone names the end.
  const ways: ChartStep[] = [];
  for (const step of steps) {
    const before = step.atOnce ? ways.pop() : undefined;
    ways.push({ ...step, from: before?.from ?? step.from });
  }
  const led = ways.filter(({ from, to }) => from !== to).map(({ n, event, to }) => `${n} ${event} ${to}`);
  const gone: string[] = [];
  let state = emptyState(journal(name)[0]?.session_id ?? '');
  for (const { n, at, events } of journal(name)) {
    for (const event of events) {
      const before = leafOf(state);
      state = applyEvent(state, event, n, Date.parse(at));
      if (leafOf(state) !== before) gone.push(`${n} ${event.type} ${leafOf(state)}`);
    }
  }
  expect(led).toEqual(gone);
  expect(last).toBe(leafOf(state));
  expect(upTo).toBe(journal(name).length);
  for (const [at, step] of steps.entries()) expect(step.from).toBe(steps[at - 1]?.to ?? 'stopped');
});

describe('a connection that is lost', () => {
  const whole = new InspectedSteps();
  const messages = sent('cancel-call');
  for (const text of messages) whole.take(text);

  test('goes on behind the last whole record, and no step is told twice', () => {
    for (let cut = 1; cut < messages.length; cut += 7) {
      const inspected = new InspectedSteps();
      for (const text of messages.slice(0, cut)) inspected.take(text);
      for (const text of sent('cancel-call', inspected.received.upTo + 1)) inspected.take(text);
      expect(inspected.received, `cut at ${cut}`).toEqual(whole.received);
    }
  });
});

describe('a position on a way', () => {
  const step = (n: number, from: string, to: string): ChartStep => ({ n, from, to, event: `to_${to}`, atOnce: false });
  const way = [step(1, 'a', 'b'), step(1, 'b', 'c'), step(4, 'c', 'd'), step(4, 'd', 'a'), step(6, 'a', 'b')];

  test('after a record is behind all of its steps; records without steps change nothing', () =>
    expect([0, 1, 2, 3, 4, 5, 6, 9].map((n) => positionAfter(way, n))).toEqual([0, 2, 2, 2, 4, 4, 5, 5]));
  test('lies in the record of the step before it', () =>
    expect([0, 1, 2, 3, 4, 5].map((position) => recordAt(way, position))).toEqual([1, 1, 1, 4, 4, 6]));
  test('every step can be stood at', () =>
    expect([0, 1, 2, 3, 4, 5].map((position) => momentAt(way, position))).toEqual([
      { state: 'a', event: null },
      ...way.map(({ to, event }) => ({ state: to, event })),
    ]));
  test('where there is no way there is nothing to stand at', () => {
    expect(positionAfter([], 3)).toBe(0);
    expect(momentAt([], 0)).toEqual({ state: null, event: null });
  });
});
