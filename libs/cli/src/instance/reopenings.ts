/** Whether a task whose bus was lost runs again on a new one. */
import { CliError, EXIT } from '../line/mod.ts';

const IN_A_ROW_MAX = 8;
/** After this time on one bus, in ms, its loss is the first one in a row again. */
const STEADY_MS = 60_000;
/** Repetitions of a task without a sign that the instance has ended: it may have been restarted at the same address. */
const UNANSWERED_MAX = 1;

/** The bus of the task. */
interface LostBus {
  /** Whether the instance has ended. */
  readonly hasEnded: boolean;
  /** Whether it may be restarted. */
  readonly mayReturn: boolean;
  /** The time since the bus was opened, in ms. */
  readonly openMs: number;
}

/** Counts the losses of the bus in a row. */
export class Reopenings {
  #inARow = 0;
  #unanswered = 0;

  /**
   * Takes the error of a task. Returns if the task must run again.
   * @throws the error if it is not about the bus; CliError `nats_unreachable` if one instance after another ends.
   */
  takeError(error: unknown, { hasEnded, mayReturn, openMs }: LostBus): void {
    if (openMs >= STEADY_MS) {
      this.#inARow = 0;
      this.#unanswered = 0;
    }
    if (hasEnded) {
      this.#inARow += 1;
      if (this.#inARow <= IN_A_ROW_MAX) return;
      const times = `${this.#inARow} times in a row, each time within ${STEADY_MS / 1_000} s`;
      throw new CliError(EXIT.error, 'nats_unreachable', `nats_unreachable: the instance has ended ${times}`);
    }
    const isUnanswered = (error as { code?: unknown } | null)?.code === 'nats_unreachable';
    if (!mayReturn || !isUnanswered || this.#unanswered >= UNANSWERED_MAX) throw error;
    this.#unanswered += 1;
  }
}
