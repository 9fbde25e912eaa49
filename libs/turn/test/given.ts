/**
 * given / when / then on journals. `given` is the initial state, `when` the tested moves, and every `then` checks the
 * journal as lines. The live actor runs next to the pure fold at every step, and every input and event is validated by
 * its strict schema, so that each test checks these too.
 */
import { isDeepStrictEqual } from 'node:util';
import { Input, type JournalRecord, SessionEvent, type StateValue } from '@coxswain/protocol';
import { expect } from 'vitest';
import {
  applyEvent,
  type Decision,
  type Effect,
  effectsOf,
  emptyState,
  leafOf,
  SessionActor,
  type SessionState,
} from '../src/mod.ts';
import { journalLine } from './journal-line.ts';
import { Later, type Move } from './moves.ts';

const SESSION_ID = 's1';

/** One step of a session: the input, the decision, and the events of its record. */
export type Step = Pick<JournalRecord, 'n' | 'input' | 'events'> & {
  readonly decision: Decision;
  readonly state: SessionState;
};

/** A session under test: its steps so far and its state. */
export class Session {
  readonly steps: Step[] = [];
  state: SessionState = emptyState(SESSION_ID);
  /** The time of the next record. */
  atMs = 0;
  readonly #actor = new SessionActor(SESSION_ID);

  /** Makes moves in order. */
  make(...moves: readonly Move[]): this {
    for (const move of moves) {
      if (move instanceof Later) this.atMs += move.ms;
      else if (Array.isArray(move)) this.make(...(move as readonly Move[]));
      else this.#put(typeof move === 'function' ? move(this.state) : (move as Input));
    }
    return this;
  }

  /** The lines of a range of steps. */
  lines(from = 0): string[] {
    return this.steps.slice(from).flatMap((step) => step.events.map(journalLine));
  }

  #put(input: Input): void {
    this.lastInput = input;
    expectValid(Input.safeParse(input).error, input);
    const n = this.steps.length + 1;
    const { decision, events } = this.#actor.step(input, n, this.atMs);
    let folded = this.state;
    for (const event of events) {
      expectValid(SessionEvent.safeParse(event).error, event);
      folded = applyEvent(folded, event, n, this.atMs);
    }
    const [expected, stored] = [{ value: folded.value, context: folded.context }, this.#actor.store()];
    // Node compares large contexts many times faster; a difference is shown by vitest.
    if (!isDeepStrictEqual(expected, stored)) expect(expected).toEqual(stored);
    this.state = folded;
    // An ignored input leaves no record, so the next one gets its number.
    if (decision.kind !== 'ignored') this.steps.push({ n, input, events, decision, state: folded });
    else this.ignored = decision.reason;
    this.decision = decision;
  }

  /** Why the last ignored input was ignored. */
  ignored: string | null = null;
  lastInput: Input | null = null;
  decision: Decision | null = null;
}

/** Assertions about a session after its moves. */
export class Outcome {
  readonly #session: Session;
  readonly #from: number;

  constructor(session: Session, from: number) {
    this.#session = session;
    this.#from = from;
  }

  /** Continues: later assertions are about these moves. */
  when(...moves: readonly Move[]): Outcome {
    return when(this.#session, moves);
  }

  /** Repeats the last input. */
  again(): Outcome {
    const { lastInput } = this.#session;
    return lastInput ? when(this.#session, [lastInput]) : expect.fail('nothing has come yet');
  }

  /** Exactly these lines were written. */
  thenJournal(...lines: readonly string[]): this {
    expect(this.#session.lines(this.#from)).toEqual(lines);
    return this;
  }

  /** These lines were written, in this order, among others. */
  thenIncludes(...lines: readonly string[]): this {
    const written = this.#session.lines(this.#from);
    let at = -1;
    for (const line of lines) {
      const found = written.indexOf(line, at + 1);
      if (found < 0) expect.fail(`"${line}" is missing, or not in this place, among\n  ${written.join('\n  ')}`);
      at = found;
    }
    return this;
  }

  /** No line of the whole journal has such a beginning. */
  thenNever(...beginnings: readonly string[]): this {
    const lines = this.#session.lines();
    for (const beginning of beginnings) {
      expect(lines.filter((line) => line === beginning || line.startsWith(`${beginning} `))).toEqual([]);
    }
    return this;
  }

  /** Exactly this number of lines of the whole journal has this beginning. */
  thenCount(beginning: string, count: number): this {
    const lines = this.#session.lines();
    expect(lines.filter((line) => line === beginning || line.startsWith(`${beginning} `))).toHaveLength(count);
    return this;
  }

  /** The last command was rejected with this code, and nothing else was written. */
  thenRejected(code: string): this {
    const events = this.#session.steps.slice(this.#from).flatMap((step) => step.events);
    const rejected = { type: 'command_rejected', code };
    // A rejected control has its own outcome event.
    expect(events).toMatchObject(
      events.length > 1 ? [rejected, { type: 'control_outcome', status: code }] : [rejected],
    );
    return this;
  }

  /** Nothing was written. */
  thenNothing(reason?: string): this {
    expect(this.#session.lines(this.#from)).toEqual([]);
    if (reason !== undefined) expect(this.#session.ignored).toBe(reason);
    return this;
  }

  /** The session is in this state. */
  thenState(leaf: string): this {
    expect(leafOf(this.#session.state)).toBe(leaf);
    return this;
  }

  /**
   * These effects, and no others, are required: `call_model`, `call_tool c1`, `consult PreToolUse` …, aborted or not.
   */
  thenEffects(...effects: readonly string[]): this {
    expect(effectsOf(this.#session.state).map(effectLine)).toEqual(effects);
    return this;
  }

  /** An event, for members that are not part of its line. */
  thenEvent<T extends SessionEvent['type']>(type: T, expected: Partial<Extract<SessionEvent, { type: T }>>): this {
    const events = this.#session.steps.slice(this.#from).flatMap((step) => step.events);
    expect(events.filter((event) => event.type === type)).toEqual(
      expect.arrayContaining([expect.objectContaining(expected as Record<string, unknown>)]),
    );
    return this;
  }

  /** The state value, as a record holds it. */
  get value(): StateValue {
    return this.#session.state.value as StateValue;
  }

  /** The session itself, for other assertions. */
  get session(): Session {
    return this.#session;
  }
}

/** A session after these moves. */
export function given(
  ...moves: readonly Move[]
): { when(...moves: readonly Move[]): Outcome } & Pick<Session, 'state'> {
  const session = new Session().make(...moves);
  return { when: (...then) => when(session, then), state: session.state };
}

function expectValid(problem: Error | undefined, what: object): void {
  if (problem) expect.fail(`${problem.message}: ${JSON.stringify(what)}`);
}

function when(session: Session, moves: readonly Move[]): Outcome {
  const from = session.steps.length;
  session.make(...moves);
  return new Outcome(session, from);
}

function effectLine(effect: Effect): string {
  const about =
    effect.kind === 'call_tool' || effect.kind === 'hand_off' || effect.kind === 'stop_call' || effect.kind === 'notify'
      ? ` ${effect.callId}`
      : effect.kind === 'consult'
        ? ` ${effect.point}${effect.callId === undefined ? '' : ` ${effect.callId}`}`
        : effect.kind === 'timer'
          ? ` ${effect.what} at ${effect.dueAtMs}`
          : '';
  return `${effect.kind}${about}${effect.abort ? ' aborted' : ''}`;
}
