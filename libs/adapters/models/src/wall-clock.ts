/** The system clock, the default. */
import type { Clock } from '@coxswain/ports';

/** The system clock of Node. */
export const wallClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (delayMs, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const wake = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const timer = setTimeout(wake, delayMs);
      signal?.addEventListener('abort', wake, { once: true });
    }),
  yield: () => new Promise((resolve) => setImmediate(resolve)),
};
