/** This host's notes of the sessions it works on. Losing one costs time at the next take-over; writing one is in nobody's way. */
import type { ActiveSessions, Log } from '@coxswain/ports';
import { type SessionRef, subjects } from '@coxswain/protocol';

/** See the top of the file. */
export class SessionNotes {
  readonly #active: ActiveSessions;
  readonly #log: Log;
  readonly #self: () => string;
  readonly #revisions = new Map<string, Promise<number>>();
  /** Writes that nobody waits for. */
  readonly #underWay = new Set<Promise<void>>();

  /** @param self the name under which the host is known now. */
  constructor(active: ActiveSessions, log: Log, self: () => string) {
    this.#active = active;
    this.#log = log;
    this.#self = self;
  }

  /** Resolves when it stands that this host works on the session. Rejects where that cannot be written. */
  async noted(ref: SessionRef): Promise<void> {
    const key = subjects.activeSession(ref);
    const known = this.#revisions.get(key);
    if (known) return void (await known);
    const writing = this.#active.note(ref, this.#self());
    this.#revisions.set(key, writing);
    try {
      await writing;
    } catch (error) {
      if (this.#revisions.get(key) === writing) this.#revisions.delete(key);
      throw error;
    }
  }

  /**
   * Says so once more: a session that had nothing to go on with has work now, and another host that had taken it up meanwhile may
   * have written over the note, and have taken its own away as there was nothing. Nobody waits for it.
   */
  notedAgain(ref: SessionRef): void {
    const key = subjects.activeSession(ref);
    const known = this.#revisions.get(key);
    if (!known) return;
    const writing = known.then(() => this.#active.note(ref, this.#self()));
    const revision = writing.catch(() => known);
    revision.catch(() => undefined);
    this.#revisions.set(key, revision);
    this.#write(ref, async () => void (await writing));
  }

  /** Removes the note: the session has no work. @param revision of a note that this host has found, rather than written. */
  forget(ref: SessionRef, revision?: number): void {
    const own = this.untrack(ref);
    this.#write(ref, async () => {
      const noted = revision ?? (await own);
      if (noted) await this.#active.forget(ref, noted);
    });
  }

  /** Offers a session with work to its next host. @param onStored called when the note is stored. */
  offer(ref: SessionRef, onStored: () => void): void {
    const own = this.untrack(ref);
    this.#write(ref, async () => {
      await own;
      await this.#active.note(ref, null);
      onStored();
    });
  }

  /** The session is no longer this host's: its note is left as it is. @returns the note's revision, or null. */
  untrack(ref: SessionRef): Promise<number | null> {
    const key = subjects.activeSession(ref);
    const known = this.#revisions.get(key);
    this.#revisions.delete(key);
    return known?.catch(() => null) ?? Promise.resolve(null);
  }

  /** Resolves when every write has ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay);
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
