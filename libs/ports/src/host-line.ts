/**
 * The line between hosts. Whatever comes over it is hearsay: it says where work should go, and may be lost, late or
 * repeated. Who may write a journal is decided by its fence alone.
 */
import type { HostBeat, SessionRef } from '@coxswain/protocol';

/** Handlers of an open line. They return at once. */
export interface HostLineHandlers {
  /** A host lives, this one included: its own beats come back to it, which says that it is connected. */
  beat(beat: HostBeat): void;
  /** Another host was rung for a session that this one works on still. */
  rung(ref: SessionRef, seq: number): void;
  /** A host has let go of a session that has work left. */
  released(ref: SessionRef): void;
}

/** The line of one host. Sending returns at once and does not throw. */
export interface HostLine {
  /**
   * Begins to listen. Resolves when all beats that the line still keeps have been handed on.
   * @param host this host's own name.
   */
  open(host: string, handlers: HostLineHandlers): Promise<void>;
  /** Tells all that this host lives. */
  beat(beat: HostBeat): void;
  /** Tells a host of a command for a session that it works on. */
  ring(host: string, ref: SessionRef, seq: number): void;
  /** Tells all that a session waits for its next host. */
  release(ref: SessionRef): void;
  /** Resolves when what others had told this host by now has been handed on. Rejects while the line is cut. */
  caughtUp(): Promise<void>;
  /** Ends listening. */
  close(): void;
}

/** A session that a host owns, or should own. */
export interface ActiveSession {
  readonly ref: SessionRef;
  /** Its owner; null for a released session with work. */
  readonly host: string | null;
  /** The note's place, which a later note of the same session changes. */
  readonly revision: number;
}

/**
 * The sessions with unfinished work. Notes may name more sessions than have work, never fewer, so that a host that
 * claims a partition need not read every session.
 */
export interface ActiveSessions {
  /** Notes who works on a session, before its first record of that work. @returns the note's revision; durable then. */
  note(ref: SessionRef, host: string | null): Promise<number>;
  /** Takes a note back, if no other has replaced it. */
  forget(ref: SessionRef, revision: number): Promise<void>;
  /** The notes of a partition. */
  list(partition: number): Promise<readonly ActiveSession[]>;
}
