import { CommandRejectedError, ReceiptTimeoutError } from './client-errors.ts';
import type { CommandReceipt } from './command-form.ts';

/** A live host records a start within milliseconds. */
const SILENT_MS = 1_000;
/**
 * The timeouts of successive requests for a receipt, in milliseconds. A busy host may have handled two equal starts as
 * one, and a host may start later. After the last timeout the session is still followed; a rejection then stays
 * unknown.
 */
const ASKED_FOR_MS = [5_000, 10_000, 20_000, 40_000, 60_000, 60_000, 60_000, 60_000] as const;

/**
 * Sends the start again and returns its receipt. A rejection throws CommandRejectedError, no receipt
 * ReceiptTimeoutError.
 */
type AskForReceipt = (wait: {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}) => Promise<CommandReceipt | undefined>;

/**
 * A start whose receipt was not awaited. A session host may reject it without a record, or treat it as a repetition of
 * the session's first start. Then a loop over the session would wait indefinitely. So a loop that does not see the
 * record of the start within a second sends the start again with the same command id. That is safe: a host repeats its
 * answer.
 */
export class UnansweredStart {
  readonly #ask: AskForReceipt;
  readonly #silentMs: number;
  #rejection: CommandRejectedError | null = null;
  #isAnswered = false;

  /** @param silentMs The time without the record of the start after which a loop asks, in milliseconds. */
  constructor(ask: AskForReceipt, silentMs = SILENT_MS) {
    this.#ask = ask;
    this.#silentMs = silentMs;
  }

  /**
   * The items of a source, until the start is known to be rejected.
   * @param open Starts the source, which ends when `stop` aborts.
   * @param isAnswer Whether an item is the record of the start.
   * @throws CommandRejectedError if the host rejected the start; errors of the source.
   */
  async *untilRejected<T>(
    open: (stop: AbortSignal) => AsyncGenerator<T, void, undefined>,
    isAnswer: (item: T) => boolean,
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
        if (!this.#isAnswered && isAnswer(item)) {
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

  /**
   * The receipt of the start.
   * @throws CommandRejectedError if the host rejected the start; ReceiptTimeoutError after about five minutes without a
   *   response of a host; errors of sending a command.
   */
  async receipt(signal: AbortSignal = new AbortController().signal): Promise<CommandReceipt | undefined> {
    if (this.#rejection) throw this.#rejection;
    for (let asked = 0; ; asked++) {
      try {
        const receipt = await this.#ask({ timeoutMs: ASKED_FOR_MS[asked] as number, signal });
        this.#isAnswered = true;
        return receipt;
      } catch (error) {
        if (error instanceof CommandRejectedError) this.#rejection = error;
        const isUnanswered = error instanceof ReceiptTimeoutError && !signal.aborted;
        if (!isUnanswered || asked + 1 === ASKED_FOR_MS.length) throw error;
      }
    }
  }

  /** Other errors than a rejection say nothing about the start: the loop has ended, or throws the same error itself. */
  async #asked(signal: AbortSignal): Promise<void> {
    await this.receipt(signal).catch(() => undefined);
  }
}
