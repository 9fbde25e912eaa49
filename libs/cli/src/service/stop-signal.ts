/** Waits for a stop: the signals SIGINT, SIGTERM and SIGHUP, the loss of the output, or an abort signal. */
import { constants } from 'node:os';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** The handlers that have not been released. */
const waiting = new Set<() => void>();
/** Whether the process is stopping. */
let isStopping = false;

/**
 * `promise` resolves and `signal` aborts at the first stop signal. A second one ends the process at once, with 128 and
 * the number of the signal. So does the first one after `release`, if nothing else waits for a stop.
 *
 * A SIGHUP after the begin of a stop is ignored: for one closed terminal, the kernel and the shell send several.
 */
export function stopSignal(): { readonly promise: Promise<undefined>; readonly signal: AbortSignal; release(): void } {
  const stopping = new AbortController();
  let stop: () => void = () => undefined;
  const promise = new Promise<undefined>((resolve) => {
    stop = () => {
      isStopping = true;
      release();
      stopping.abort();
      resolve(undefined);
    };
  });
  const release = () => {
    waiting.delete(stop);
    for (const signal of SIGNALS) {
      process.off(signal, stop);
      process.off(signal, exitAtOnce);
      if (waiting.size === 0) process.on(signal, exitAtOnce);
    }
  };
  waiting.add(stop);
  for (const signal of SIGNALS) {
    process.off(signal, exitAtOnce);
    process.on(signal, stop);
  }
  return { promise, signal: stopping.signal, release };
}

/**
 * Stops everything that waits for a stop, because the terminal or the reader of the output has gone.
 * @returns false if nothing waits and the process is not stopping: then it can end at once.
 */
export function hangUp(): boolean {
  for (const stop of [...waiting]) stop();
  return isStopping;
}

/**
 * Unlike the default effect of a signal, this runs the handlers of the exit: they remove temporary files, restore the
 * terminal and kill commands of tools.
 */
function exitAtOnce(signal: NodeJS.Signals): void {
  if (signal === 'SIGHUP' && isStopping) return;
  process.exit(128 + constants.signals[signal]);
}

/** Resolves when the signal aborts; at once if it already has. */
export function untilAborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}
