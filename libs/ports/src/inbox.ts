/**
 * The inbox port: durable commands in stream order, and notifications of new ones. The publisher port: ephemeral
 * messages.
 */
import type { Delta, Receipt, SessionRef } from '@coxswain/protocol';

/** One stored command. */
export interface StoredCommand {
  readonly ref: SessionRef;
  /** The subject's last token, unchecked. */
  readonly verb: string;
  /** The body as published, unchecked. */
  readonly payload: Uint8Array;
  /** Position in the command stream. */
  readonly seq: number;
  /** When the store accepted it, in milliseconds since 1970. */
  readonly storedAtMs: number;
  /** A due timer. It comes from the timer store, to which clients cannot write. */
  readonly isTimer?: boolean | undefined;
  /** `Cox-Command-Id`, unchecked. */
  readonly commandId?: string | undefined;
  /** `Cox-Receipt-To`, unchecked. */
  readonly receiptTo?: string | undefined;
  /** `Cox-Actor`, unchecked. */
  readonly actor?: string | undefined;
  /** `traceparent`, unchecked. */
  readonly traceparent?: string | undefined;
  /** `Cox-Restricted` is set: the host's policy applies, even if the host trusts the bus. */
  readonly restricted?: boolean | undefined;
}

/** A notification: a command has arrived for a session. Read the inbox for its content. */
export interface CommandNotification {
  readonly ref: SessionRef;
  readonly seq: number;
  /** The command is a due timer; see {@link StoredCommand.isTimer}. */
  readonly isTimer?: boolean | undefined;
  /**
   * Acknowledges the delivery, and the store deletes the command. Call it only at or below the session's durable
   * cursor, or after a rejection without a record.
   */
  ack(): void;
}

/**
 * An unroutable message of the command stream: it has an invalid id, or the subject transform did not accept its
 * subject.
 */
export interface UnroutableCommand {
  readonly subject: string;
  /** Its position in the command stream; 0 if no stream has stored it. */
  readonly seq: number;
  readonly receiptTo?: string | undefined;
  ack(): void;
}

/** Handlers of an open inbox. They return at once. */
export interface InboxHandlers {
  notify(notification: CommandNotification): void;
  unroutable(command: UnroutableCommand): void;
}

/** The queue of commands for sessions. */
export interface CommandInbox {
  /**
   * The name of the command stream, and its creation time in milliseconds since 1970, as digits. Cursors contain both.
   */
  readonly incarnation: { readonly stream: string; readonly created: string };
  /**
   * Starts deliveries of these partitions, by default of all. Resolves once deliveries have started. A call on an open
   * inbox changes the set: it releases the partitions that are left out, and does not interrupt the others.
   */
  open(handlers: InboxHandlers, partitions?: readonly number[]): Promise<void>;
  /**
   * The session's commands after `afterSeq`, in stream order.
   * @param untilSeq the position of a notification: the result reaches at least this command, if that is still stored.
   *   Null returns the commands that any replica has, at most `BOUNDS.inboxCatchUpMax`. Notifications of the others
   *   follow.
   */
  read(ref: SessionRef, afterSeq: number, untilSeq: number | null): Promise<readonly StoredCommand[]>;
  /**
   * Stops deliveries, also those that an unfinished `open` would start: that call then resolves without them. The store
   * delivers unacknowledged commands again to the next open inbox.
   */
  close(): Promise<void>;
}

/** Sends commands to sessions. */
export interface CommandSender {
  /**
   * Stores a command durably.
   * @returns its position in the stream and its command id. The id is `options.commandId`, or derived from the
   *   position: `<stream>-<created ms>-<seq>`. An `id` in the body is ignored here, although the session uses it.
   * @throws if the store refuses the command, or does not acknowledge it within the adapter's time limit.
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
      /** Applies the host's policy to the command. */
      readonly restricted?: boolean;
    },
  ): Promise<{ readonly seq: number; readonly commandId: string }>;
}

/**
 * Sends ephemeral messages. The loss of a message loses no state.
 * Contract: returns at once and never throws. The adapter logs messages that it cannot send.
 */
export interface Publisher {
  delta(ref: SessionRef, delta: Delta): void;
  receipt(subject: string, receipt: Receipt): void;
}
