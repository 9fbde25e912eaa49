/**
 * The background check of streams against their size limits. One host of a bus runs it, for its metrics and its log.
 */
import { setTimeout } from 'node:timers/promises';
import type { Log } from '@coxswain/ports';

/** Dependencies of the check. */
export interface WatchedStreams {
  /** Whether this host runs the check. Rejects while NATS does not respond. */
  isFirst(): Promise<boolean>;
  /** The used share of each limited stream's limit, 0 to 1. Rejects while NATS does not respond. */
  fill(): Promise<ReadonlyMap<string, number>>;
  readonly log: Log;
}

/** The last result of a host's background check. */
export interface StreamFillWatch {
  /** Shares by stream; empty before the first check, and on hosts that do not run it. */
  fill(): ReadonlyMap<string, number>;
  stop(): void;
}

/** The alert rules use the same threshold. */
const NEARLY_FULL = 0.8;
const EVERY_MS = 60_000;
const FIRST_MS = 5_000;

/** Starts the background check. */
export function watchStreamFill({ isFirst, fill, log }: WatchedStreams, firstMs = FIRST_MS): StreamFillWatch {
  const ended = new AbortController();
  let last: ReadonlyMap<string, number> = new Map();

  async function look(): Promise<void> {
    const now: ReadonlyMap<string, number> = (await isFirst()) ? await fill() : new Map();
    for (const [stream, share] of now)
      if (share >= NEARLY_FULL && (last.get(stream) ?? 0) < NEARLY_FULL)
        log.warn(
          { stream, share },
          'a stream is nearly full; a full stream rejects new messages: cox doctor prints a remedy',
        );
    last = now;
  }

  /** Contract: does not reject. */
  async function run(): Promise<void> {
    for (let pauseMs = firstMs; !ended.signal.aborted; pauseMs = EVERY_MS) {
      await setTimeout(pauseMs, undefined, { signal: ended.signal, ref: false }).catch(() => undefined);
      if (ended.signal.aborted) return;
      // While NATS does not respond, the last result is kept. Other checks report the outage.
      await look().catch((error: Error) => log.debug({ error: error.message }, 'the streams cannot be checked now'));
    }
  }
  void run();

  return { fill: () => last, stop: () => ended.abort() };
}
