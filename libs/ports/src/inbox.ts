/** The inbox port: durable commands, rung in by doorbells and read in stream order. The publisher: ephemeral messages. */
import type { Delta, Receipt, SessionRef } from '@coxswain/protocol';

/** One command as it is stored. */
export interface StoredCommand {
  readonly ref: SessionRef;
  /** The subject's last token, unchecked. */
  readonly verb: string;
  /** The body as published, unchecked. */
  readonly payload: Uint8Array;
  /** Position in the command stream. */
  readonly seq: number;
  /** When the store took it, milliseconds since 1970. */
  readonly storedAtMs: number;
  /** A due timer: it came from the store of timers, where no client can put anything. */
  readonly isTimer?: boolean | undefined;
  /** `Cox-Command-Id`, unchecked. */
  readonly commandId?: string | undefined;
  /** `Cox-Receipt-To`, unchecked. */
  readonly receiptTo?: string | undefined;
  /** `Cox-Actor`, unchecked. */
  readonly actor?: string | undefined;
  /** `traceparent`, unchecked. */
  readonly traceparent?: string | undefined;
  /** `Cox-Restricted` is set: the policy of the host holds, also where the host trusts the bus. */
  readonly restricted?: boolean | undefined;
}

/** A command has arrived for a session. Says where, not what: read the inbox for that. */
export interface Doorbell {
  readonly ref: SessionRef;
  readonly seq: number;
  /** What has arrived is a due timer; see {@link StoredCommand.isTimer}. */
  readonly isTimer?: boolean | undefined;
  /** Tells the store that this delivery is done with; the command is deleted. Call it only at or below the session's durable cursor, or after a rejection without a record. */
  ack(): void;
}

/** A message in the command stream that belongs to no session: a hostile id, a subject that the transform did not take. */
export interface StrayCommand {
  readonly subject: string;
  /** Its place in the command stream; 0 where no stream took it. */
  readonly seq: number;
  readonly receiptTo?: string | undefined;
  ack(): void;
}

/** Handlers of an open inbox. They return at once. */
export interface InboxHandlers {
  ring(doorbell: Doorbell): void;
  stray(command: StrayCommand): void;
}

/** Where commands wait. */
export interface CommandInbox {
  /** The command stream's name and incarnation (when it was created, milliseconds since 1970, in digits), for cursors. */
  readonly incarnation: { readonly stream: string; readonly created: string };
  /**
   * Starts deliveries of these partitions (all when left out). Returns when they flow. Called again while open, it
   * changes the set: partitions left out are let go, others are not interrupted.
   */
  open(handlers: InboxHandlers, partitions?: readonly number[]): Promise<void>;
  /**
   * The session's commands after `afterSeq`, in stream order, at least up to `untilSeq` (a doorbell's position) where
   * that command is still stored. Null: those that any replica knows of, and no more than `BOUNDS.inboxCatchUpMax`; the
   * others' deliveries are still to come.
   */
  read(ref: SessionRef, afterSeq: number, untilSeq: number | null): Promise<readonly StoredCommand[]>;
  /** Stops deliveries. Unacknowledged commands are delivered again to the next open inbox. */
  close(): Promise<void>;
}

/** Where clients put commands. */
export interface CommandSender {
  /**
   * Stores a command durably.
   * @returns its position and the command id it is known by: the one given here, else the position's
   * (`<stream>-<created ms>-<seq>`). An `id` in the body, by which the session would
   * go, is not looked at.
   * @throws when the store does not acknowledge it within its bound.
   */
  send(
    ref: SessionRef,
    verb: string,
    payload: Uint8Array,
    options?: {
      readonly commandId?: string;
      readonly receiptTo?: string;
      readonly actor?: string;
      readonly traceparent?: string;
      /** Holds the command to the policy of the host. */
      readonly restricted?: boolean;
    },
  ): Promise<{ readonly seq: number; readonly commandId: string }>;
}

/**
 * Sends ephemeral messages. A lost one loses no state.
 * Contract: returns at once and never throws; what cannot be sent is logged by the adapter.
 */
export interface Publisher {
  delta(ref: SessionRef, delta: Delta): void;
  receipt(subject: string, receipt: Receipt): void;
}
