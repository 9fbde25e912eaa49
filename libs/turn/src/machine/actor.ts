/**
 * The live actor of a session, and the fold. Both send a record's events one by one; a snapshot of either is the same
 * state.
 */
import type { Input, SessionEvent, StateValue } from '@coxswain/protocol';
import { type Actor, createActor, transition } from 'xstate';
import { emptyContext, type SessionContext } from '../core/context.ts';
import { decide } from '../core/decide.ts';
import type { Decision } from '../core/decision.ts';
import { next } from '../core/next.ts';
import { type SessionState, turnMachine } from './chart.ts';
import { LEAVES, takeEvent } from './compiled-chart.ts';
import { leafOf } from './state.ts';

/** The machine did not take an event: a broken invariant of ours, or a journal that is not ours. */
export class EventNotAcceptedError extends Error {
  readonly code = 'event_not_accepted';
}

/** More events followed from one input than can be right. */
export class DerivationUnboundedError extends Error {
  readonly code = 'derivation_unbounded';
}

/** State as JSON: what snapshots hold. */
export interface StoredState {
  readonly value: StateValue;
  readonly context: SessionContext;
}

/** Events that one input may cause: every queue drained and every call of the largest batch settled twice over. */
const DERIVED_MAX = 4_096;

/** The machine as live actors run it: its own events by the compiled chart, which is the same and quicker. */
const liveMachine: typeof turnMachine = Object.create(turnMachine, {
  transition: {
    value: (...[state, event, scope]: Parameters<typeof turnMachine.transition>) =>
      takeEvent(state, event) ?? turnMachine.transition(state, event, scope),
  },
});

/** A session's machine, alive. It never acts by itself, so it can be thrown away and folded again at any time. */
export class SessionActor {
  readonly #sessionId: string;
  /** Null while it rests. */
  #actor: Actor<typeof turnMachine> | null = null;
  #rested: SessionState | undefined;

  /** @param from a state to go on from; without it the session has no record yet. */
  constructor(sessionId: string, from?: StoredState) {
    this.#sessionId = sessionId;
    this.#rested = from && restoreState(from);
  }

  /** The state after the events sent so far. */
  get state(): SessionState {
    return this.#actor?.getSnapshot() ?? this.#rested ?? this.actor.getSnapshot();
  }

  /** The XState actor; it is made where there is none. */
  get actor(): Actor<typeof turnMachine> {
    if (this.#actor) return this.#actor;
    const input = { sessionId: this.#sessionId };
    const snapshot = this.#rested;
    this.#actor = snapshot ? createActor(liveMachine, { input, snapshot }) : createActor(liveMachine, { input });
    // Without an observer of errors XState throws one that `evolve` throws a second time, outside of every call.
    this.#actor.subscribe({ error: () => undefined });
    this.#actor.start();
    this.#rested = undefined;
    return this.#actor;
  }

  /** Keeps the state alone until something is sent: an actor is several times as large, and its session may wait long. */
  rest(): void {
    if (!this.#actor) return;
    this.#rested = this.#actor.getSnapshot();
    this.#actor = null;
  }

  /**
   * Sends one event of record `n`, made at `atMs`.
   * @throws EventNotAcceptedError where the state has no transition for it, or the event does not fit its type.
   */
  send(event: SessionEvent, n: number, atMs: number): void {
    const { actor } = this;
    const before = actor.getSnapshot();
    actor.send({ ...event, n, at_ms: atMs });
    // XState ignores what it does not know; every accepted event passes `evolve`, which makes a new context.
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
   * Does one step: decides the input, sends what it causes, then everything that follows until the machine waits.
   * @param n the number of the record that it would make.
   * @param atMs the time of that record, milliseconds since 1970, as the record holds it.
   * @returns the decision, and the events of the record; none where the input was ignored.
   * @throws EventNotAcceptedError, DerivationUnboundedError; the actor is then to be thrown away.
   */
  step(
    input: Input,
    n: number,
    atMs: number,
  ): { readonly decision: Decision; readonly events: readonly SessionEvent[] } {
    const decision = decide(this.state, input, atMs);
    if (decision.kind === 'ignored') return { decision, events: [] };
    const events: SessionEvent[] = [];
    for (const event of decision.events) {
      this.send(event, n, atMs);
      events.push(event);
    }
    for (let derived = next(this.state); derived; derived = next(this.state)) {
      if (events.length >= DERIVED_MAX)
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
 * @throws EventNotAcceptedError where the machine has no such state: XState would take a removed name in silence.
 */
export function restoreState(stored: StoredState): SessionState {
  const leaf = leafOf(stored as Pick<SessionState, 'value'>);
  if (!LEAVES.has(leaf)) throw new EventNotAcceptedError(`the machine has no state ${leaf}`);
  return turnMachine.resolveState(stored as unknown as Parameters<typeof turnMachine.resolveState>[0]);
}

/** One event of a record, on a state: the pure form of {@link SessionActor.send}, and slower. */
export function applyEvent(state: SessionState, event: SessionEvent, n: number, atMs: number): SessionState {
  const [after] = transition(turnMachine, state, { ...event, n, at_ms: atMs });
  if (after.context === state.context)
    throw new EventNotAcceptedError(`state ${leafOf(state)} does not accept ${event.type} (record ${n})`);
  return after;
}

/** Where one event has led. */
export interface TracedEvent {
  readonly after: SessionState;
  /** The states that were entered, in order: with what happened at once, more than one; none where it stays. */
  readonly entered: readonly string[];
}

/** As {@link applyEvent}, by the compiled chart, and with the way. @throws EventNotAcceptedError */
export function traceEvent(state: SessionState, event: SessionEvent, n: number, atMs: number): TracedEvent {
  const entered: string[] = [];
  const after = takeEvent(state, { ...event, n, at_ms: atMs }, entered);
  if (after === null || after.context === state.context)
    throw new EventNotAcceptedError(`state ${leafOf(state)} does not accept ${event.type} (record ${n})`);
  return { after, entered };
}
