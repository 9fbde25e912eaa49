/**
 * A session's machine as an inspector sees it, told from its records.
 *
 * INSPECT-1  The journal is what is inspected, not an actor: it is the same in every process, and after the fact.
 * INSPECT-2  Every event of a record is one step of the machine, sent through the machine itself. No step is guessed.
 * INSPECT-3  After each record the machine is where the record says, or nothing more is told.
 */
import type { JournalRecord, SessionEvent } from '@coxswain/protocol';
import { EventNotAcceptedError, emptyState, leafOf, type SessionState, traceEvent, turnMachine } from '@coxswain/turn';
import { ChainBrokenError, FoldDivergedError } from '../journal/load-session.ts';
import { machineOf, otherMachine } from '../journal/machine-version.ts';
import { type ActorMessage, type InspectionMessage, messageHead } from './inspection-messages.ts';
import { machineDefinition } from './machine-definition.ts';
import { StateShower, shownEvent } from './shown-state.ts';

/** What is told of a session. */
export interface InspectorOptions {
  /** The first record whose events are told; default 1. What came before is in the actor's snapshot. */
  readonly from?: number | undefined;
  /** Whether snapshots have the context; default true. */
  readonly context?: boolean | undefined;
  /** Where another inspector of the session stood, before the first record that is told. Records are taken from the next one on. */
  readonly after?: InspectedFold | undefined;
}

/** Where an inspector stands between two records: what it has folded. It never changes, and may be shared. */
export interface InspectedFold {
  readonly sessionId: string;
  /** The record that was taken last; 0 before the first. */
  readonly n: number;
  readonly state: SessionState;
  /** The version of the machine that the records have named; undefined where none has. */
  readonly machine: number | undefined;
}

/** See the top of the file. */
export class SessionInspector {
  readonly #sessionId: string;
  readonly #from: number;
  readonly #shower: StateShower;
  #state: SessionState;
  #n = 0;
  #machine: number | undefined;
  #announced = false;

  /** @throws ChainBrokenError where `after` is another session's, or not before `from`. */
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

  /** Where it stands: to be asked for when all messages of a record have been taken. */
  get fold(): InspectedFold {
    return { sessionId: this.#sessionId, n: this.#n, state: this.#state, machine: this.#machine };
  }

  /** The record that was taken last; 0 before the first. */
  get n(): number {
    return this.#n;
  }

  /**
   * Takes the next record; every record of the session is to be taken, from the first, or from the one behind `after`. The messages have to be taken to their end:
   * each is made when it is asked for.
   * @throws ChainBrokenError where it is not the next one; FoldDivergedError, MachineVersionUnknownError where it does not lead
   *   this release's machine to where it says.
   */
  *take(record: JournalRecord): Generator<InspectionMessage, void, undefined> {
    const { n, at, events, session_id: sessionId } = record;
    if (n !== this.#n + 1 || sessionId !== this.#sessionId)
      throw new ChainBrokenError(`record ${n} of ${sessionId} does not follow record ${this.#n} of ${this.#sessionId}`);
    this.#machine = machineOf(record) ?? this.#machine;
    this.#n = n;
    const isTold = n >= this.#from;
    if (isTold && !this.#announced) yield this.#actor(n - 1, at);
    const head = messageHead(sessionId, at);
    for (const [index, event] of events.entries()) {
      const { after, entered } = this.#sent(event, record);
      this.#state = after;
      if (!isTold) continue;
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
    // Whoever asks for what is yet to come sees the machine meanwhile.
    if (!isTold && n === this.#from - 1) yield this.#actor(n, at);
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
