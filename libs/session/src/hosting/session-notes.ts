/**
 * This host's notes of its active sessions, and the marks and entries of these sessions in the index. A lost note delays the
 * next claim. The first note precedes the first record of a session here, and so does the mark if the index works
 * (index-writes.ts). Later writes delay no step. `NoteComparison` (compare-notes.ts) finds lost notes.
 *
 * | when | the note | the index |
 * |---|---|---|
 * | A runner loads the session, or the idle session has work again. | names this host | a mark |
 * | It is passivated (`Host.#runnerLeft`). | removed | its entry if this runner has written a record, otherwise `prune` |
 * | A claim finds no open effects, or a tombstone (`Host.claim`). | removed | a mark; without a record `prune` |
 * | It is deleted here. | removed | unchanged; a mark while this host's mark is owed |
 * | It is offered to its next host. | without a host | unchanged |
 * | Its runner leaves it for another reason. | unchanged | unchanged |
 *
 * In the last two cases an owed write to the index is dropped. `keepIndexFilled` (fill-index.ts) finds missing entries.
 */
import type { ActiveSessions, Log } from '@coxswain/ports';
import { type SessionRef, subjects } from '@coxswain/protocol';
import type { IndexUpdate, IndexWrites } from './index-writes.ts';

interface Noted {
  /** The revision of the session's note. */
  readonly note: number;
  /** The revision of the session's mark in the index; 0 without an index, and while the mark is owed. */
  readonly mark: number;
}

/** Writes, repeats and removes notes. An entry is stored before the note is removed: a host that crashes in between leaves a note. */
export class SessionNotes {
  readonly #active: ActiveSessions;
  readonly #index: IndexWrites;
  readonly #log: Log;
  readonly #self: () => string;
  readonly #revisions = new Map<string, Promise<Noted>>();
  /** Writes in flight. */
  readonly #underWay = new Set<Promise<void>>();

  /** @param self the name under which other hosts know this host now. */
  constructor(ports: { readonly active: ActiveSessions; readonly log: Log }, index: IndexWrites, self: () => string) {
    this.#active = ports.active;
    this.#index = index;
    this.#log = ports.log;
    this.#self = self;
  }

  /** Stores the note and the mark, unless this host has stored them already. Rejects where the note is not stored. */
  async storeNote(ref: SessionRef): Promise<void> {
    const key = subjects.activeSession(ref);
    const known = this.#revisions.get(key);
    if (known) return void (await known);
    const writing = this.#note(ref);
    this.#revisions.set(key, writing);
    try {
      await writing;
    } catch (error) {
      if (this.#revisions.get(key) === writing) this.#revisions.delete(key);
      throw error;
    }
  }

  /**
   * Writes the note and the mark again, because an idle session has work now. Another host that claimed the session
   * meanwhile may have replaced the note, and removed its own note when it found no work. The caller does not wait for
   * the writes. Does nothing for a session without a note of this host.
   */
  storeNoteAgain(ref: SessionRef): void {
    const key = subjects.activeSession(ref);
    const known = this.#revisions.get(key);
    if (!known) return;
    const writing = known.then(() => this.#note(ref));
    const revision = writing.catch(() => known);
    revision.catch(() => undefined);
    this.#revisions.set(key, revision);
    this.#write(ref, async () => void (await writing));
  }

  /**
   * Removes the note: the session has no work. First writes the session to the index. While that write is owed, the
   * note stays.
   * @param update what the index gets.
   * @param revision the revision of a note that this host has found. Without it, the note that this host has written is
   *   removed.
   */
  forget(ref: SessionRef, update: IndexUpdate, revision?: number): void {
    const own = this.untrack(ref);
    this.#write(ref, async () => {
      const noted = await own;
      await this.#index.update(ref, update, noted?.mark ?? 0, async () => {
        const note = revision ?? noted?.note;
        if (note) await this.#active.forget(ref, note);
      });
    });
  }

  /**
   * Removes the note of a deleted session. In the index its mark stays, or the entry of a deletion from outside. While
   * the mark is owed, the note stays.
   */
  forgetDeleted(ref: SessionRef): void {
    const own = this.#taken(ref);
    this.#write(ref, async () => {
      const noted = await own;
      if (!noted) return;
      const forget = () => this.#active.forget(ref, noted.note);
      // Without a mark, the index may show the session as it was before its deletion.
      if (noted.mark > 0) await forget();
      else await this.#index.update(ref, 'mark', noted.mark, forget);
    });
  }

  /** Offers a session with work to its next host: stores a note without a host. @param onStored called after that. */
  offer(ref: SessionRef, onStored: () => void): void {
    const own = this.untrack(ref);
    this.#write(ref, async () => {
      await own;
      await this.#active.note(ref, null);
      onStored();
    });
  }

  /**
   * Forgets a session that this host has left, and drops its owed write to the index. The stored note stays as it is.
   * @returns the revisions that this host has written; null without a successful write.
   */
  untrack(ref: SessionRef): Promise<Noted | null> {
    this.#index.forget(ref);
    return this.#taken(ref);
  }

  /** Resolves when the writes that are in flight now have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  #taken(ref: SessionRef): Promise<Noted | null> {
    const key = subjects.activeSession(ref);
    const known = this.#revisions.get(key);
    this.#revisions.delete(key);
    return known?.catch(() => null) ?? Promise.resolve(null);
  }

  async #note(ref: SessionRef): Promise<Noted> {
    const [note, mark] = await Promise.all([this.#active.note(ref, this.#self()), this.#index.mark(ref)]);
    return { note, mark };
  }

  #write(ref: SessionRef, write: () => Promise<void>): void {
    const one = write()
      .catch((error: Error) => {
        this.#log.warn({ session_id: ref.sessionId, error: error.message }, 'the note of a session was not written');
      })
      .finally(() => this.#underWay.delete(one));
    this.#underWay.add(one);
  }
}
