/**
 * A session's inbox. Notifications name new commands; the reader reads them in the order of the stream. It acknowledges a
 * delivery when every command up to it is recorded, or needs no record (RUNNER-7, session-runner.ts).
 * `SessionIntake` (session-intake.ts) takes each command.
 */
import type { CommandInbox, Log, Publisher, StoredCommand } from '@coxswain/ports';
import type { Cursor, ErrorCode, SessionRef } from '@coxswain/protocol';
import { inputOfCommand } from './check-command.ts';
import type { RunnerNotification } from './runner-ports.ts';
import { Receipts } from './send-receipts.ts';

/** Reads the inbox of one session. */
export class InboxReader {
  readonly #inbox: CommandInbox;
  readonly #ref: SessionRef;
  readonly #log: Log;
  /** By place in the command stream: the store repeats each delivery every few seconds until it is acknowledged. */
  readonly #notifications = new Map<number, RunnerNotification>();
  /** This reader took the commands up to here. So a command without a record, such as a repetition, is not taken twice. */
  #takenSeq = 0;
  #catchesUp = false;

  constructor(inbox: CommandInbox, ref: SessionRef, log: Log) {
    this.#inbox = inbox;
    this.#ref = ref;
    this.#log = log;
  }

  /** A command or a due timer has arrived. */
  notify(notification: RunnerNotification): void {
    const known = this.#notifications.get(notification.seq);
    // Another host may have passed on what this host has received, too. Only with `ack` the delivery ends here.
    if (notification.ack || !known?.ack) this.#notifications.set(notification.seq, notification);
  }

  /**
   * The next {@link read} also takes stored commands without a notification: the former owner may have received
   * notifications that this host did not. After a failure, the read after it does so.
   */
  catchUp(): void {
    this.#catchesUp = true;
  }

  /** The position of a journal's cursor in this inbox. 0 if the cursor is of another command stream. */
  position(cursor: Cursor | undefined): number {
    const { stream, created } = this.#inbox.incarnation;
    return cursor && cursor.stream === stream && cursor.created === created ? cursor.seq : 0;
  }

  /**
   * Reads the commands up to the last notified one, and takes one after another.
   * @param cursor the session's cursor. Commands up to it are not taken.
   * @param take takes one command; false where it cannot be judged now. If it throws or returns false, the deliveries stay
   *   unacknowledged, for a later read or the session's next owner.
   * @returns the sequence numbers of the commands whose deliveries were acknowledged; none if the inbox cannot be read.
   *   A command may be taken before its delivery arrives: a later read acknowledges that delivery. If another host has the
   *   delivery, this host never acknowledges it.
   * @throws what `take` throws.
   */
  async read(
    cursor: Cursor | undefined,
    take: (command: StoredCommand, place: Cursor) => Promise<boolean>,
  ): Promise<readonly number[]> {
    const notifications = this.#takeNotifications();
    const after = Math.max(this.position(cursor), this.#takenSeq);
    const caughtUp = this.#catchesUp ? await this.#readUpTo(null, after) : [];
    const more = caughtUp && (await this.#readUpTo(lastOf(notifications), caughtUp.at(-1)?.seq ?? after));
    const commands = more && (await this.#withNotified([...caughtUp, ...more], notifications, after));
    // The inbox could not be read. Nothing is acknowledged, so the store repeats the deliveries.
    if (commands === null) return [];
    const { stream, created } = this.#inbox.incarnation;
    for (const command of commands) {
      let isTaken = false;
      try {
        isTaken = await take(command, { stream, created, seq: command.seq });
      } finally {
        if (!isTaken) this.#restore(notifications);
      }
      if (!isTaken) return [];
      this.#takenSeq = command.seq;
    }
    // Each is now recorded, or needs no record. After a failure above, the next read catches up again.
    this.#catchesUp = false;
    return this.#acknowledge(notifications, commands, after);
  }

  /**
   * Drops the notifications if all are of due timers, and the session waits for none of these. The deliveries of timers
   * that the inbox still has are acknowledged.
   * @returns whether the notifications were dropped, and no new one has arrived. False also without any notification.
   * @param allSpent whether the session waits for none of these timers.
   * @throws what `allSpent` throws.
   */
  async dropSpentTimers(allSpent: (timers: readonly StoredCommand[]) => Promise<boolean>): Promise<boolean> {
    const notified = [...this.#notifications.values()];
    if (notified.length === 0 || notified.some(({ isTimer }) => !isTimer)) return false;
    const seqs = notified.map(({ seq }) => seq);
    const timers = await this.#readUpTo(Math.max(...seqs), Math.min(...seqs) - 1);
    if (timers === null || timers.some(({ isTimer }) => !isTimer)) return false;
    if (timers.length > 0 && !(await allSpent(timers))) return false;
    for (const one of notified) if (this.#notifications.get(one.seq) === one) this.#notifications.delete(one.seq);
    this.#acknowledge(notified, timers, 0);
    return this.#notifications.size === 0;
  }

  /**
   * Rejects the commands up to the last notified one, because the journal is damaged or deleted and a retry cannot
   * help. Their senders get the reason. If the inbox cannot be read, rejects none: the store repeats the deliveries.
   * @param code the code of the journal's problem.
   * @param message the text of this problem.
   */
  async refuse(publisher: Publisher, code: ErrorCode, message: string): Promise<void> {
    const notifications = this.#takeNotifications();
    const commands = await this.#readUpTo(lastOf(notifications), this.#takenSeq);
    if (commands === null) return;
    const receipts = new Receipts(publisher, this.#ref);
    for (const command of commands) {
      const input = inputOfCommand(command, this.#inbox.incarnation);
      const { command_id, verb } = input;
      const text = code === 'session_deleted' ? message : `the session's journal cannot be read: ${message}`;
      receipts.rejectedUnrecorded(input, { type: 'command_rejected', command_id, verb, code, message: text });
    }
    this.#acknowledge(notifications, commands, this.#takenSeq);
  }

  /**
   * Acknowledges deliveries whose commands were found, or are not after the position `after`. Any other stays
   * unacknowledged: its command is gone, or the server that was read lags behind the server that notified. The store
   * repeats the delivery.
   * @returns the sequence numbers of the deliveries that were acknowledged.
   */
  #acknowledge(
    notifications: Iterable<RunnerNotification>,
    found: readonly StoredCommand[],
    after: number,
  ): readonly number[] {
    const seqs = new Set(found.map(({ seq }) => seq));
    const acknowledged: number[] = [];
    for (const { seq, ack } of notifications) {
      if (seq > after && !seqs.has(seq))
        this.#log.debug({ session_id: this.#ref.sessionId, seq }, 'a notified command was not found');
      else if (ack) {
        ack();
        acknowledged.push(seq);
      }
    }
    return acknowledged;
  }

  #takeNotifications(): readonly RunnerNotification[] {
    const notifications = [...this.#notifications.values()];
    this.#notifications.clear();
    return notifications;
  }

  /** Keeps notifications for a later read, unless their deliveries were repeated meanwhile. */
  #restore(notifications: readonly RunnerNotification[]): void {
    const newer = this.#takeNotifications();
    for (const notification of [...notifications, ...newer]) this.notify(notification);
  }

  /**
   * Reads notified commands that the first read has skipped, one by one: that read may have used a damaged replica. Once the
   * cursor has passed such a command, its next delivery would be acknowledged as taken.
   * @returns all commands in order; null if the inbox cannot be read.
   */
  async #withNotified(
    commands: readonly StoredCommand[],
    notifications: readonly RunnerNotification[],
    after: number,
  ): Promise<readonly StoredCommand[] | null> {
    const found = new Map(commands.map((command) => [command.seq, command]));
    const last = commands.at(-1)?.seq ?? 0;
    for (const { seq } of notifications) {
      if (seq <= after || seq > last || found.has(seq)) continue;
      const again = await this.#readUpTo(seq, seq - 1);
      if (again === null) return null;
      for (const command of again) if (command.seq === seq) found.set(seq, command);
    }
    return found.size === commands.length ? commands : [...found.values()].sort((one, other) => one.seq - other.seq);
  }

  /**
   * Reads the commands after the position `after`, up to the position `last`. Null for `last` reads as many as one
   * catch-up returns (`CommandInbox.read`).
   * @returns null if the inbox cannot be read.
   */
  async #readUpTo(last: number | null, after: number): Promise<readonly StoredCommand[] | null> {
    if (last !== null && last <= after) return [];
    try {
      return await this.#inbox.read(this.#ref, after, last);
    } catch (error) {
      this.#log.warn(
        { session_id: this.#ref.sessionId, error: (error as Error).message },
        'the inbox cannot be read now',
      );
      return null;
    }
  }
}

function lastOf(notifications: readonly RunnerNotification[]): number {
  return notifications.reduce((newest, { seq }) => Math.max(newest, seq), 0);
}
