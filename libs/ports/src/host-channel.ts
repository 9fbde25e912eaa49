/**
 * The host channel. Its messages are hints about where work should go: they can be lost, late or repeated. Only the fence
 * of a journal (journal.ts) decides which host may write it.
 */
import type { HostBeat, SessionRef } from '@coxswain/protocol';

/** Handlers of an open channel. They return at once. */
export interface HostChannelHandlers {
  /** A heartbeat of a host. This host receives its own heartbeats as well, which shows that it is connected. */
  heartbeat(beat: HostBeat): void;
  /**
   * Another host received a command for a session that this host works on, or asks whether this host has the session.
   * @param seq the command's place in the command stream; 0 for a question.
   */
  notified(ref: SessionRef, seq: number): void;
  /** A host has left a session that has unfinished work, or does not have a session that it was asked about. */
  sessionLeft(ref: SessionRef): void;
}

/** The host channel of one host. Sending returns at once and does not throw. */
export interface HostChannel {
  /**
   * Starts to listen. Resolves once the handlers have received all stored heartbeats.
   * @param host this host's own name.
   */
  open(host: string, handlers: HostChannelHandlers): Promise<void>;
  /** Sends a heartbeat of this host to all hosts. */
  heartbeat(beat: HostBeat): void;
  /** Notifies a host of a command for a session that it works on, or asks whether it has the session (`seq` 0). */
  notify(host: string, ref: SessionRef, seq: number): void;
  /** Notifies all hosts that this host has left a session, or does not have a session that it was asked about. */
  announceSessionLeft(ref: SessionRef): void;
  /**
   * Resolves once this host's handlers have received all messages that other hosts sent before the call. Rejects if the
   * connection is lost.
   */
  caughtUp(): Promise<void>;
  /** Stops listening. */
  close(): void;
}

/** A session with unfinished work, and its owner. */
export interface ActiveSession {
  readonly ref: SessionRef;
  /** Its owner. Null if a host has released the session, or if the owner cannot be read. */
  readonly host: string | null;
  /** The revision of the note. A later note of the same session has another one. */
  readonly revision: number;
}

/**
 * The sessions with unfinished work. There may be notes of sessions without work, but each session with work has a
 * note. So a host that claims a partition need not read every session.
 */
export interface ActiveSessions {
  /**
   * Notes the host that works on a session, before its first record of that work. Durable when it resolves. @returns
   * the note's revision.
   */
  note(ref: SessionRef, host: string | null): Promise<number>;
  /** Removes a note, unless a later one has replaced it. */
  forget(ref: SessionRef, revision: number): Promise<void>;
  /** The notes of a partition. */
  list(partition: number): Promise<readonly ActiveSession[]>;
}
