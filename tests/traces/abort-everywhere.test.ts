/**
 * An abort works in every state, at once. The states are the machine's own: every state in which a session waits, as the
 * golden traces come through it, is cancelled there, and failed there.
 */
import { decodeRecord, type Input, type SessionEvent } from '@coxswain/protocol';
import { effectsOf, isEnded, leafOf, SessionActor, type StoredState, topStateOf, turnMachine } from '@coxswain/turn';
import { describe, expect, test } from 'vitest';
import { settlement } from '../../libs/turn/test/world.ts';
import { readTrace, traceNames } from './trace-files.ts';

/** A moment of a trace: what had happened by then, and the state after it. */
interface Moment {
  readonly trace: string;
  readonly n: number;
  readonly state: StoredState;
  readonly before: readonly SessionEvent[];
}

/** For each state in which a session of a trace waited, the moments at which it did. */
const moments = momentsByState();
const WAITING = waitingStates();

const ABORTS: Readonly<Record<string, Input>> = {
  cancel: { type: 'command', verb: 'cancel', command_id: 'the-end', body: { reason: 'enough' } },
  'an exception of ours': { type: 'session_failed', error: { code: 'session_failed', message: 'broken' }, n: 0 },
};

describe.each(Object.entries(ABORTS))('%s', (_what, abort) => {
  test.each(WAITING)('in %s leads down at once, and the run ends once, with what it had open closed', (leaf) => {
    const here = moments.get(leaf) ?? [];
    expect(here.length, `no trace waits in ${leaf}`).toBeGreaterThan(0);
    for (const moment of here) {
      const { events, state, actor, n } = aborted(moment, abort);
      const where = `${moment.trace}, record ${moment.n}`;
      expect(isEnded(state) || topStateOf(state) === 'tearing_down', where).toBe(true);
      for (const effect of effectsOf(state)) {
        // An order to stop is itself what the abort has made; and what has gone out to another session cannot be taken back.
        const isOfEnd =
          /^(close_tools|stop_call|start_child|stop_child|notify_parent)$/.test(effect.kind) ||
          (effect.kind === 'consult' && isAskedOfEnd(moment.state));
        if (!isOfEnd) expect(effect.abort, `${where}: ${effect.kind}`).not.toBeNull();
      }
      const after = [...events, ...letGo(actor, n)];
      expect(isEnded(actor.state), where).toBe(true);
      expect(
        after.filter(({ type }) => type === 'call_started'),
        where,
      ).toEqual([]);
      const run = [...moment.before, ...after];
      const last = run.slice(run.findLastIndex(({ type }) => type === 'prompt_received'));
      const count = (type: SessionEvent['type']) => last.filter((event) => event.type === type).length;
      expect([count('agent_start'), count('agent_end')], where).toEqual([1, 1]);
      expect(count('turn_end'), where).toBe(count('turn_start'));
      // The parent is told of the end after it.
      expect(
        effectsOf(actor.state).filter(({ kind }) => kind !== 'notify_parent'),
        where,
      ).toEqual([]);
    }
  });
});

function aborted({ state: from, n: last }: Moment, input: Input) {
  const actor = new SessionActor('s1', from);
  const n = last + 1;
  const { events } = actor.step(input, n, from.context.at_ms);
  return { events, state: actor.state, actor, n };
}

function letGo(actor: SessionActor, from: number): SessionEvent[] {
  const events: SessionEvent[] = [];
  // Every effect once, and every point around the end: a stated bound, so that a run that cannot end fails here.
  for (let n = from + 1; n < from + 200 && !isEnded(actor.state); n++) {
    const input = settlement(actor.state);
    if (!input) break;
    events.push(...actor.step(input, n, actor.state.context.at_ms).events);
  }
  return events;
}

function isAskedOfEnd({ context }: StoredState): boolean {
  return context.consult?.of_end === true;
}

function momentsByState(): ReadonlyMap<string, readonly Moment[]> {
  const found = new Map<string, Moment[]>();
  for (const trace of traceNames()) {
    const actor = new SessionActor('s1');
    const before: SessionEvent[] = [];
    for (const bytes of readTrace(trace)) {
      const { n, at, events } = decodeRecord(bytes);
      for (const event of events) actor.send(event, n, Date.parse(at));
      before.push(...events);
      const leaf = leafOf(actor.state);
      const known = found.get(leaf) ?? [];
      found.set(leaf, known);
      known.push({ trace, n, state: actor.store(), before: [...before] });
    }
  }
  return found;
}

function waitingStates(): string[] {
  return Object.values(turnMachine.states).flatMap((top) =>
    Object.values(top.states)
      .filter((child) => child.tags.includes('wait'))
      .map((child) => `${top.key}.${child.key}`),
  );
}
