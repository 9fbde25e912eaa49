/**
 * The live actor of a session ({@link SessionActor}), and pure functions that apply one event to a state
 * ({@link applyEvent}, {@link traceEvent}). All of them give the same states.
 */
import type { Input, SessionEvent, StateValue } from '@coxswain/protocol';
import { type Actor, createActor, transition } from 'xstate';
import { emptyContext, type SessionContext } from '../core/context.ts';
import { decide } from '../core/decide.ts';
import type { Decision } from '../core/decision.ts';
import { next } from '../core/next.ts';
import { type SessionState, turnMachine } from './chart.ts';
import { type ChartLogic, chartLogic, compiledChart } from './chart-runner.ts';
import { leafOf } from './state.ts';

/**
 * The machine does not accept an event, fails to apply it, or has no state with the name in a snapshot. The cause is a
 * broken invariant, a malformed event, or a journal or snapshot of another machine version.
 */
export class EventNotAcceptedError extends Error {
  readonly code = 'event_not_accepted';
}

/** One input causes more events than any valid input can. */
export class DerivationUnboundedError extends Error {
  readonly code = 'derivation_unbounded';
}

/** A state as JSON, as stored snapshots hold it. */
export interface StoredState {
  readonly value: StateValue;
  readonly context: SessionContext;
}

/** Maximum of events per input: enough to drain every queue, and to settle every call of the largest batch twice. */
const EVENTS_PER_INPUT_MAX = 4_096;

/**
 * The live machine of a session. It never acts by itself, so a host can discard it at any time and fold the journal
 * again.
 */
export class SessionActor {
  readonly #sessionId: string;
  /** Null while the session rests, and before the first use. */
  #actor: Actor<ChartLogic> | null = null;
  /** The state for the next actor. Undefined while there is an actor, and for a session without a record. */
  #rested: SessionState | undefined;

  /**
   * @param from the state to continue from; without it, the session has no record.
   * @throws as {@link restoreState}.
   */
  constructor(sessionId: string, from?: StoredState) {
    this.#sessionId = sessionId;
    this.#rested = from && restoreState(from);
  }

  /** The state after the events sent so far. */
  get state(): SessionState {
    return this.#actor?.getSnapshot() ?? this.#rested ?? this.actor.getSnapshot();
  }

  /** The XState actor, created on demand. */
  get actor(): Actor<ChartLogic> {
    if (this.#actor) return this.#actor;
    const snapshot = this.#rested ?? emptyState(this.#sessionId);
    this.#actor = createActor(chartLogic(), { input: { sessionId: this.#sessionId }, snapshot });
    // Without an observer of errors, XState throws an exception of `evolve` again from a timer, where nothing catches it.
    this.#actor.subscribe({ error: () => undefined });
    this.#actor.start();
    this.#rested = undefined;
    return this.#actor;
  }

  /** Drops the XState actor until its next use, and keeps its state, which needs a fraction of the memory. */
  releaseMemory(): void {
    if (!this.#actor) return;
    this.#rested = this.#actor.getSnapshot();
    this.#actor = null;
  }

  /**
   * Sends one event of record `n`.
   * @param atMs the time of the record, milliseconds since 1970.
   * @throws EventNotAcceptedError if the state has no transition for it, or `evolve` throws, as for a malformed event.
   */
  send(event: SessionEvent, n: number, atMs: number): void {
    const { actor } = this;
    const before = actor.getSnapshot();
    actor.send({ ...event, n, at_ms: atMs });
    // XState ignores unknown events. Every accepted event passes `evolve`, which makes a new context.
    const after = actor.getSnapshot();
    if (after.status === 'error') {
      const why = (after.error as Error).message;
      const message = `state ${leafOf(before)} cannot apply ${event.type} (record ${n}): ${why}`;
      throw new EventNotAcceptedError(message, { cause: after.error });
    }
    if (after.context === before.context) {
      throw new EventNotAcceptedError(`state ${leafOf(before)} does not accept ${event.type} (record ${n})`);
    }
  }

  /**
   * Processes one input: decides it, sends the events that it causes, then each derived event until the machine waits.
   * @param n the number of the record for this input.
   * @param atMs the time of that record, milliseconds since 1970, as the record holds it.
   * @returns the decision, and the events of the record; none if the input was ignored, or is a deletion.
   * @throws EventNotAcceptedError, DerivationUnboundedError; the caller must then discard the actor.
   */
  step(
    input: Input,
    n: number,
    atMs: number,
  ): { readonly decision: Decision; readonly events: readonly SessionEvent[] } {
    const decision = decide(this.state, input, atMs);
    if (!('events' in decision)) return { decision, events: [] };
    const events: SessionEvent[] = [];
    for (const event of decision.events) {
      this.send(event, n, atMs);
      events.push(event);
    }
    for (let derived = next(this.state); derived; derived = next(this.state)) {
      if (events.length >= EVENTS_PER_INPUT_MAX)
        throw new DerivationUnboundedError(`one ${input.type} causes ${events.length} events (record ${n})`);
      this.send(derived, n, atMs);
      events.push(derived);
    }
    return { decision, events };
  }

  /** The state as JSON. */
  store(): StoredState {
    const { value, context } = this.state;
    return { value: value as StateValue, context };
  }
}

/** The state of a session before its first record. */
export function emptyState(sessionId: string): SessionState {
  return restoreState({ value: 'stopped', context: emptyContext(sessionId) });
}

/**
 * A state from JSON.
 * @throws EventNotAcceptedError if the value names no leaf of the chart; XState alone would accept the name of a
 *   parent. Error if the value is an empty object.
 */
export function restoreState(stored: StoredState): SessionState {
  const leaf = leafOf(stored as Pick<SessionState, 'value'>);
  const state = compiledChart.stateNamed(leaf, stored.context);
  if (!state) throw new EventNotAcceptedError(`the machine has no state ${leaf}`);
  return state;
}

/**
 * The state after one event of a record, computed by plain XState: the pure and slower form of {@link SessionActor.send}.
 * @param atMs the time of the record, milliseconds since 1970.
 * @throws EventNotAcceptedError if the state has no transition for the event; what `evolve` throws for a malformed one.
 */
export function applyEvent(state: SessionState, event: SessionEvent, n: number, atMs: number): SessionState {
  const [after] = transition(turnMachine, state, { ...event, n, at_ms: atMs });
  if (after.context === state.context)
    throw new EventNotAcceptedError(`state ${leafOf(state)} does not accept ${event.type} (record ${n})`);
  return after;
}

/** The state after an event, with its path through the chart. */
export interface TracedEvent {
  readonly after: SessionState;
  /**
   * The names of the entered states, in order, also by eventless transitions. Empty if the event only changes the
   * context.
   */
  readonly entered: readonly string[];
}

/**
 * As {@link applyEvent}, with the entered states. It always uses the compiled chart: XState's public API does not show that
 * an event has left a state and entered it again.
 * @throws EventNotAcceptedError if the state has no transition for the event; what `evolve` throws for a malformed one.
 */
export function traceEvent(state: SessionState, event: SessionEvent, n: number, atMs: number): TracedEvent {
  const entered: string[] = [];
  const after = compiledChart.apply(state, { ...event, n, at_ms: atMs }, entered);
  if (after.context === state.context)
    throw new EventNotAcceptedError(`state ${leafOf(state)} does not accept ${event.type} (record ${n})`);
  return { after, entered };
}
