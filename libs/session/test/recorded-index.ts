/** An index of sessions in memory, whose entries a test can read. */
import type { Journal, SessionIndex } from '@coxswain/ports';
import { type SessionIndexEntry, type SessionRef, subjects } from '@coxswain/protocol';

export class RecordedIndex implements SessionIndex {
  /** By subject. Null is a mark. */
  readonly entries = new Map<string, { entry: SessionIndexEntry | null; revision: number }>();
  /** Whether the store was deleted: each request fails. */
  isLost = false;
  readonly #journal: Journal;
  #revision = 0;
  #store = 1;

  /** @param journal of the sessions that the index is of. */
  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** The entry of a session; null for a mark, undefined for none. */
  of(ref: SessionRef): SessionIndexEntry | null | undefined {
    return this.entries.get(subjects.sessionEntry(ref))?.entry;
  }

  /** The store is there again, and empty. */
  recreate() {
    this.isLost = false;
    this.entries.clear();
    this.#store++;
  }

  async ensure() {
    this.#check();
    return String(this.#store);
  }

  #check() {
    if (this.isLost) throw new Error('no responders');
  }

  async mark(ref: SessionRef) {
    this.#check();
    this.entries.set(subjects.sessionEntry(ref), { entry: null, revision: ++this.#revision });
    return this.#revision;
  }

  async put(ref: SessionRef, entry: SessionIndexEntry, revision: number) {
    this.#check();
    if ((this.entries.get(subjects.sessionEntry(ref))?.revision ?? 0) !== revision) return false;
    this.entries.set(subjects.sessionEntry(ref), { entry, revision: ++this.#revision });
    return true;
  }

  async prune(ref: SessionRef) {
    this.#check();
    if (!(await this.#journal.last(ref))) this.entries.delete(subjects.sessionEntry(ref));
  }

  async missing() {
    const missing: SessionRef[] = [];
    for await (const ref of this.#journal.sessions('default'))
      if (!this.entries.has(subjects.sessionEntry(ref))) missing.push(ref);
    return missing;
  }
}
