/** Sound simulations, and the same with one thing changed in their evidence: what checkers are tried on. */
import type { EventType, JournalRecord, SessionEvent, SessionStatus } from '@coxswain/protocol';
import type { Evidence, Journal } from './checkers/check.ts';
import { tombstoneOf } from './checkers/deletion.ts';
import { isCopy } from './checkers/origin.ts';
import { History, type HistoryEntry } from './history.ts';
import { simulate } from './simulate.ts';

/** One journal, and the evidence in which it stands. */
export interface Changed {
  readonly journal: Journal;
  readonly evidence: Evidence;
}

/** What is changed, and the checker that must find it. */
export type Case = readonly [checker: string, what: string, (sound: SoundEvidence) => Changed];

/** What stands in the place of an event. */
export type Change = (event: SessionEvent, record: JournalRecord) => readonly SessionEvent[];

/** It stands there twice. */
export const twice: Change = (event) => [event, event];
/** It is missing. */
export const never: Change = () => [];

/** No simulation so far has what a case changes. */
class NotAmongThem extends Error {}

/** See the top of the file. */
export class SoundEvidence {
  readonly #all: Evidence[] = [];
  readonly #seeds: number[];

  /** @param seeds simulated one by one, as cases need them: most cases find what they change in the first few. */
  constructor(seeds: readonly number[]) {
    this.#seeds = [...seeds];
  }

  /**
   * What a case makes of the first evidence that has what it changes.
   * @throws an error that names what none of the seeds has, or the problems of a simulation that is not sound.
   */
  async made(make: Case[2]): Promise<Changed> {
    for (;;) {
      try {
        return make(this);
      } catch (error) {
        const seed = error instanceof NotAmongThem ? this.#seeds.shift() : undefined;
        if (seed === undefined) throw error;
        const { evidence, problems } = await simulate(seed);
        if (problems.length > 0) throw new Error(`seed ${seed} is not sound: ${JSON.stringify(problems)}`);
        this.#all.push(evidence);
      }
    }
  }

  /** The first journal that has an event of this type, which `holds` if given, with that one event changed. */
  changed<T extends EventType>(
    type: T,
    change: Change,
    holds: (event: Extract<SessionEvent, { type: T }>, record: JournalRecord, journal: Journal) => boolean = () => true,
  ): Changed {
    for (const { journal, evidence } of this.#journals()) {
      let done = false;
      const records = journal.records.map((record) => ({
        ...record,
        events: record.events.flatMap((event) => {
          if (done || event.type !== type || !holds(event as Extract<SessionEvent, { type: T }>, record, journal))
            return [event];
          done = true;
          return change(event, record);
        }),
      }));
      if (done) return { journal: { ...journal, records }, evidence };
    }
    throw new NotAmongThem(`no sound journal has such a ${type}`);
  }

  /** The first journal of so many records, with one record changed. */
  record(index: number, change: (record: JournalRecord) => JournalRecord): Changed {
    for (const { journal, evidence } of this.#journals()) {
      if (journal.records.length < 12) continue;
      const records = journal.records.map((one, place) => (place === index ? change(one) : one));
      return { journal: { ...journal, records }, evidence };
    }
    throw new NotAmongThem('no journal is long enough');
  }

  /** The first journal with a record that `holds`, with that record changed. */
  recordOf(holds: (record: JournalRecord) => boolean, change: (record: JournalRecord) => JournalRecord): Changed {
    for (const { journal, evidence } of this.#journals()) {
      const index = journal.records.findIndex(holds);
      if (index < 0) continue;
      const records = journal.records.map((one, place) => (place === index ? change(one) : one));
      return { journal: { ...journal, records }, evidence };
    }
    throw new NotAmongThem('no sound journal has such a record');
  }

  /** The first session of which a host says something that `holds`, and says it otherwise. */
  status(
    holds: (status: SessionStatus, journal: Journal) => boolean,
    change: (status: SessionStatus, journal: Journal) => SessionStatus,
  ): Changed {
    for (const { journal, evidence } of this.#journals()) {
      const status = evidence.statuses.get(journal.session);
      if (!status || !holds(status, journal)) continue;
      const statuses = new Map(evidence.statuses).set(journal.session, change(status, journal));
      return { journal, evidence: { ...evidence, statuses } };
    }
    throw new NotAmongThem('of no session is such a thing said');
  }

  /** The first journal that `holds`, with another history. */
  history(
    holds: (journal: Journal, evidence: Evidence) => boolean,
    change: (entry: HistoryEntry) => HistoryEntry,
  ): Changed {
    for (const { journal, evidence } of this.#journals()) {
      if (!holds(journal, evidence)) continue;
      const history = new History(() => 0);
      history.entries.push(...evidence.history.entries.map(change));
      return { journal, evidence: { ...evidence, history } };
    }
    throw new NotAmongThem('no sound journal is like that');
  }

  /** The first journal that `holds`, as it is. */
  unchanged(holds: (journal: Journal, evidence: Evidence) => boolean): Changed {
    for (const found of this.#journals()) if (holds(found.journal, found.evidence)) return found;
    throw new NotAmongThem('no sound journal is like that');
  }

  /** Copies are for a checker of their own, and of a deleted one no host says anything. */
  *#journals(): Iterable<Changed> {
    for (const evidence of this.#all)
      for (const journal of evidence.journals)
        if (!isCopy(journal) && !tombstoneOf(journal.session, evidence)) yield { journal, evidence };
  }
}
