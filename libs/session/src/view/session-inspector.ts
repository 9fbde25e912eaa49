/**
 * Turns a session's records into messages of XState's inspector.
 *
 * INSPECT-1  The source is the journal, not a live actor: each process gives the same messages, also after the run.
 * INSPECT-2  Each event of a record is one step of the machine, by its compiled chart (`traceEvent`). No step is
 *            guessed.
 * INSPECT-3  After each record the machine must be in the recorded state; otherwise the inspection ends with an error.
 */
import type { JournalRecord, SessionEvent } from '@coxswain/protocol';
import { EventNotAcceptedError, emptyState, leafOf, type SessionState, traceEvent, turnMachine } from '@coxswain/turn';
import { ChainBrokenError, FoldDivergedError } from '../journal/load-session.ts';
import { machineOf, otherMachine } from '../journal/machine-version.ts';
import { type ActorMessage, type InspectionMessage, messageHead } from './inspection-messages.ts';
import { machineDefinition } from './machine-definition.ts';
import { StateShower, shownEvent } from './shown-state.ts';

/** What an inspection shows. */
export interface InspectorOptions {
  /** The first record whose events are shown; default 1. The actor's snapshot covers the records before it. */
  readonly from?: number | undefined;
  /** Whether snapshots include the context; default true. */
  readonly context?: boolean | undefined;
  /** The fold of another inspector of this session, before `from`. Records are then taken from the one after it. */
  readonly after?: InspectedFold | undefined;
}

/** The state of an inspector between two records. Immutable, so inspectors may share it. */
export interface InspectedFold {
  readonly sessionId: string;
  /** The number of the last record taken; 0 before the first. */
  readonly n: number;
  readonly state: SessionState;
  /** The machine version that the records name; undefined before a record names one. */
  readonly machine: number | undefined;
}

/** Inspects one session, record by record. */
export class SessionInspector {
  readonly #sessionId: string;
  readonly #from: number;
  readonly #shower: StateShower;
  #state: SessionState;
  #n = 0;
  #machine: number | undefined;
  #announced = false;

  /** @throws ChainBrokenError where `after` belongs to another session, or is not before `from`. */
  constructor(sessionId: string, { from = 1, context = true, after }: InspectorOptions = {}) {
    this.#sessionId = sessionId;
    this.#from = from;
    this.#shower = new StateShower(context);
    this.#state = after?.state ?? emptyState(sessionId);
    if (after === undefined) return;
    if (after.sessionId !== sessionId || after.n >= from)
      throw new ChainBrokenError(
        `record ${from} of ${sessionId} does not follow record ${after.n} of ${after.sessionId}`,
      );
    this.#n = after.n;
    this.#machine = after.machine;
  }

  /** The current fold. Complete only after all messages of the last record were read. */
  get fold(): InspectedFold {
    return { sessionId: this.#sessionId, n: this.#n, state: this.#state, machine: this.#machine };
  }

  /** The number of the last record taken; 0 before the first. */
  get n(): number {
    return this.#n;
  }

  /**
   * Takes the next record: the first of the session, or the one after `after`, then each following one. The generator must be
   * read to its end, because each message is made on demand.
   * @throws ChainBrokenError where the record is not the next one; FoldDivergedError or MachineVersionUnknownError where this
   *   release's machine does not accept an event, or does not reach the recorded state.
   */
  *take(record: JournalRecord): Generator<InspectionMessage, void, undefined> {
    const { n, at, events, session_id: sessionId } = record;
    if (n !== this.#n + 1 || sessionId !== this.#sessionId)
      throw new ChainBrokenError(`record ${n} of ${sessionId} does not follow record ${this.#n} of ${this.#sessionId}`);
    this.#machine = machineOf(record) ?? this.#machine;
    this.#n = n;
    const isShown = n >= this.#from;
    if (isShown && !this.#announced) yield this.#actor(n - 1, at);
    const head = messageHead(sessionId, at);
    for (const [index, event] of events.entries()) {
      const { after, entered } = this.#sent(event, record);
      this.#state = after;
      if (!isShown) continue;
      const shown = shownEvent(event);
      const place = { n, index };
      yield { type: '@xstate.event', id: `${n}.${index}.event`, ...head, event: shown, coxswain: place };
      const snapshot = this.#shower.snapshot(after);
      const last = index === events.length - 1;
      yield {
        type: '@xstate.snapshot',
        id: `${n}.${index}.snapshot`,
        ...head,
        event: shown,
        snapshot,
        coxswain: { ...place, entered, last },
      };
    }
    const said = leafOf({ value: record.state } as Pick<SessionState, 'value'>);
    if (leafOf(this.#state) !== said)
      throw this.#diverged(`record ${n} of ${sessionId} leads to ${leafOf(this.#state)}, but it names ${said}`);
    // A client that asks for records that do not exist yet gets the machine at once, with its state before them.
    if (!isShown && n === this.#from - 1) yield this.#actor(n, at);
  }

  #sent(event: SessionEvent, { n, at }: JournalRecord): ReturnType<typeof traceEvent> {
    try {
      return traceEvent(this.#state, event, n, Date.parse(at));
    } catch (error) {
      if (error instanceof EventNotAcceptedError) throw this.#diverged(error.message);
      throw error;
    }
  }

  #diverged(message: string): Error {
    return otherMachine(this.#n, this.#machine, message) ?? new FoldDivergedError(message);
  }

  #actor(n: number, at: string): ActorMessage {
    this.#announced = true;
    return {
      type: '@xstate.actor',
      id: `${n}.actor`,
      ...messageHead(this.#sessionId, at),
      name: turnMachine.id,
      definition: machineDefinition(),
      snapshot: this.#shower.snapshot(this.#state),
      coxswain: { n },
    };
  }
}
