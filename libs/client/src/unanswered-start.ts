/**
 * A start whose receipt was not waited for. A session host may reject it, and a rejected start leaves no record: a loop over the
 * session would wait indefinitely. So a loop that sees no record for a moment sends the start again under its command id, which changes
 * nothing: a host that rejected it rejects it again, with the reason.
 */
import { CommandRejectedError, ReceiptTimeoutError } from './client-errors.ts';

/** A live host records a start within milliseconds. */
const SILENT_MS = 1_000;
/**
 * How long each question waits for a receipt, milliseconds. A busy host may have taken two of the same start as one, and a host may
 * start later. After the last one the session is still followed; only a rejection is then unknown.
 */
const ASKED_FOR_MS = [5_000, 10_000, 20_000, 40_000, 60_000, 60_000, 60_000, 60_000] as const;

/** Sends the start again and waits for its receipt. A rejection is a `CommandRejectedError`, no receipt a `ReceiptTimeoutError`. */
type AskForReceipt = (wait: { readonly timeoutMs: number; readonly signal: AbortSignal }) => Promise<unknown>;

/** See the top of the file. */
export class UnansweredStart {
  readonly #ask: AskForReceipt;
  readonly #silentMs: number;
  #rejection: CommandRejectedError | null = null;
  #isAnswered = false;

  /** @param silentMs how long a loop waits for a first record before it asks, milliseconds.
   */
  constructor(ask: AskForReceipt, silentMs = SILENT_MS) {
    this.#ask = ask;
    this.#silentMs = silentMs;
  }

  /**
   * The items of a source, until the start is known to be rejected.
   * @param open starts the source, which ends when `stop` aborts.
   * @param isRecord whether an item is a record, so that the start was accepted.
   * @throws CommandRejectedError, as the host rejected the start; what the source throws.
   */
  async *untilRejected<T>(
    open: (stop: AbortSignal) => AsyncGenerator<T, void, undefined>,
    isRecord: (item: T) => boolean,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<T, void, undefined> {
    if (this.#rejection) throw this.#rejection;
    const leaving = new AbortController();
    const asking = new AbortController();
    const timer = this.#isAnswered
      ? undefined
      : setTimeout(
          () => void this.#asked(asking.signal).then(() => this.#rejection && leaving.abort()),
          this.#silentMs,
        );
    try {
      for await (const item of open(signal ? AbortSignal.any([signal, leaving.signal]) : leaving.signal)) {
        if (!this.#isAnswered && isRecord(item)) {
          this.#isAnswered = true;
          clearTimeout(timer);
          asking.abort();
        }
        yield item;
      }
    } finally {
      clearTimeout(timer);
      asking.abort();
    }
    if (this.#rejection) throw this.#rejection;
  }

  async #asked(signal: AbortSignal): Promise<void> {
    for (const timeoutMs of ASKED_FOR_MS) {
      try {
        await this.#ask({ timeoutMs, signal });
        this.#isAnswered = true;
      } catch (error) {
        if (error instanceof CommandRejectedError) this.#rejection = error;
        // No host has answered yet.
        else if (error instanceof ReceiptTimeoutError && !signal.aborted) continue;
        // Anything else says nothing about the start: the loop has ended, or it throws the same error itself.
      }
      return;
    }
  }
}
