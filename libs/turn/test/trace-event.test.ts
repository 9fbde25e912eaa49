/**
 * The path of an event through the chart: by the compiled chart, and by XState's inspection of the same event.
 */
import type { SessionEvent } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { journal, journalNames } from '../../../tests/traces/golden-journals.ts';
import { EventNotAcceptedError, emptyState, leafOf, traceEvent } from '../src/mod.ts';
import { edgesTaken } from './machine-edges.ts';

test.each(journalNames)('for every event of %s', (name) => {
  const records = journal(name);
  let state = emptyState(records[0]?.session_id ?? '');
  for (const { n, at, events } of records) {
    for (const event of events) {
      const { after, entered } = traceEvent(state, event, n, Date.parse(at));
      const { transitions, leaves } = edgesTaken(state, [event], n);
      // XState also reports a step without a change of state, which enters no state.
      const gone = leaves.filter((_, at) => transitions[at]?.target !== undefined);
      expect(entered, `${event.type} of record ${n}`).toEqual(gone);
      expect(leafOf(after)).toBe(entered.at(-1) ?? leafOf(state));
      state = after;
    }
  }
});

test('an event without a transition is rejected, and so is an unknown one', () => {
  const of = (event: object) => () => traceEvent(emptyState('s1'), event as SessionEvent, 1, 0);
  expect(of({ type: 'turn_start', turn: 1 })).toThrow(EventNotAcceptedError);
  expect(of({ type: 'no_such_event' })).toThrow(/stopped does not accept no_such_event \(record 1\)/);
});
