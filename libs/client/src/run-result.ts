/** Collects the results of runs from the records of a session. */
import { canonicalJson, type JournalRecord, type Json, type StopReason, textOf } from '@coxswain/protocol';
import { type TokenUsage, tokenUsage } from './usage-report.ts';

/** The end of a run. */
export interface RunResult<Output = Json> {
  readonly run: number;
  readonly stopReason: StopReason;
  /** The text of the last answer, or its replacement by a PostStep hook; empty if the run has no answer. */
  readonly text: string;
  /** The value of the last answer, if the session has an output schema and the answer matches it. */
  readonly output?: Output;
  readonly turns: number;
  readonly usage: TokenUsage;
  /** In USD; absent if the price is unknown. */
  readonly costUsd?: number;
  /** The number of messages queued for the next run. */
  readonly pending: number;
  readonly error?: { readonly code: string; readonly message: string };
  /** The number of the record with the end of the run. */
  readonly n: number;
}

/** Takes a session's records in order and returns the result of each run at its end. */
export class ResultCollector {
  #text = '';
  #newest: RunResult | null = null;

  /** The result of the run that ended last. */
  get newest(): RunResult | null {
    return this.#newest;
  }

  /** Takes a record. @returns the result of the run if the record contains its end, otherwise null. */
  add(record: JournalRecord): RunResult | null {
    let result: RunResult | null = null;
    for (const event of record.events) {
      if (event.type === 'prompt_received') this.#text = '';
      else if (event.type === 'message_complete') this.#text = textOf(event.message);
      else if (event.type === 'step_finished' && event.output !== undefined)
        this.#text = typeof event.output === 'string' ? event.output : canonicalJson(event.output);
      else if (event.type === 'agent_end') {
        this.#newest = result = {
          run: event.run,
          stopReason: event.stop_reason,
          text: this.#text,
          ...(event.output === undefined ? {} : { output: event.output }),
          turns: event.turns,
          usage: tokenUsage(event.usage),
          ...(event.cost_usd === undefined ? {} : { costUsd: event.cost_usd }),
          pending: event.pending,
          ...(event.error === undefined ? {} : { error: { code: event.error.code, message: event.error.message } }),
          n: record.n,
        };
      }
    }
    return result;
  }
}
