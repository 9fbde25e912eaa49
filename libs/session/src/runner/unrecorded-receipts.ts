/**
 * Receipts of commands that were rejected without a record, beyond a quota or the share of rejections
 * (`SessionIntake.#rejectUnrecorded`). Each is sent once its command is settled: this host has acknowledged the
 * delivery, or the cursor of a record has passed the command (RUNNER-11, session-runner.ts). Until then the command may
 * be delivered again and be accepted, so a receipt of its rejection would be wrong.
 */
export class UnrecordedReceipts {
  /** By place in the command stream. At most the deliveries that the inbox allows in flight. */
  readonly #deferred = new Map<number, () => void>();

  /** Defers a receipt. @param seq the place of its command in the command stream. */
  defer(seq: number, send: () => void): void {
    this.#deferred.set(seq, send);
  }

  /** Sends the receipts of these places. */
  send(seqs: Iterable<number>): void {
    for (const seq of seqs) {
      this.#deferred.get(seq)?.();
      this.#deferred.delete(seq);
    }
  }

  /** Sends all deferred receipts. */
  sendAll(): void {
    this.send(this.#deferred.keys());
  }
}
