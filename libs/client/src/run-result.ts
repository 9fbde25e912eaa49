/** How a run ended, put together from the records of a session. */

import { canonicalJson, type JournalRecord, type Json, type StopReason, textOf } from '@coxswain/protocol';
import { type TokenUsage, tokenUsage } from './usage-report.ts';

/** The end of a run. */
export interface RunResult<Output = Json> {
  readonly run: number;
  readonly stopReason: StopReason;
  /** The last answer's text, or what a PostStep hook has made of it; empty where the run had none. */
  readonly text: string;
  /** The value of the last answer, where the session has an output schema and the answer fits it. */
  readonly output?: Output;
  readonly turns: number;
  readonly usage: TokenUsage;
  /** USD; only where the price is known. */
  readonly costUsd?: number;
  /** Injections that wait for the next run. */
  readonly pending: number;
  readonly error?: { readonly code: string; readonly message: string };
  /** The record that holds the end. */
  readonly n: number;
}

/** Takes a session's records in order and gives each run's result at its end. */
export class ResultCollector {
  #text = '';
  #newest: RunResult | null = null;

  /** The result of the newest run that has ended. */
  get newest(): RunResult | null {
    return this.#newest;
  }

  /** The run's result if this record holds its end, else null. */
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
