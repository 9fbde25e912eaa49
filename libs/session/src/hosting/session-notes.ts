/** This host's notes of its active sessions. A lost note delays the next claim; a slow write delays no step. */
import type { ActiveSessions, Log } from '@coxswain/ports';
import { type SessionRef, subjects } from '@coxswain/protocol';

/** Writes, repeats and removes notes. */
export class SessionNotes {
  readonly #active: ActiveSessions;
  readonly #log: Log;
  readonly #self: () => string;
  readonly #revisions = new Map<string, Promise<number>>();
  /** Writes in flight. */
  readonly #underWay = new Set<Promise<void>>();

  /** @param self the name under which other hosts know this host now. */
  constructor(active: ActiveSessions, log: Log, self: () => string) {
    this.#active = active;
    this.#log = log;
    this.#self = self;
  }

  /** Resolves when the note is stored. Rejects where it cannot be. */
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
   * Writes the note again, because an idle session has work now. Another host that claimed it meanwhile may have replaced the
   * note, and removed its own when it found no work. The caller does not wait for the write.
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
