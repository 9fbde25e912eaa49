/** The system clock, and ids derived from a clock. Hosts on any bus use them; a simulation provides its own. */
import { randomFillSync } from 'node:crypto';
import type { Clock, Ids } from '@coxswain/ports';

// The delay of setTimeout is a signed 32-bit number of milliseconds. With a longer delay it fires at once.
const longestSleepMs = 2 ** 31 - 1;

/** Creates the system clock. A sleep in progress keeps the process alive; abort it to let the process end. */
export function createSystemClock(): Clock {
  let yielding: (() => void)[] = [];
  return {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    async sleep(delayMs, signal) {
      const endsMs = performance.now() + delayMs;
      let leftMs = delayMs;
      while (leftMs > 0 && !signal?.aborted) {
        await sleepOnce(Math.min(leftMs, longestSleepMs), signal);
        leftMs = endsMs - performance.now();
        // A timer may fire a fraction of a millisecond early by the monotonic clock. Sleeping again would waste time.
        if (leftMs < 1) return;
      }
    },
    // All callers resume in the same turn of the event loop, so that their writes are sent together.
    yield: () =>
      new Promise((resolve) => {
        if (yielding.push(resolve) > 1) return;
        setImmediate(() => {
          const all = yielding;
          yielding = [];
          for (const go of all) go();
        });
      }),
  };
}

function sleepOnce(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, delayMs);
    signal?.addEventListener('abort', done, { once: true });
  });
}

const counterBits = 12;

/**
 * Creates UUIDv7 ids (RFC 9562 section 5.7) that sort in the order of creation, also within one millisecond and when
 * the clock is set back. Each millisecond has a 12-bit counter with a random start (section 6.2, method 1).
 */
export function createIds(clock: Pick<Clock, 'nowMs'> = createSystemClock()): Ids {
  const bytes = new Uint8Array(16);
  const view = new DataView(bytes.buffer);
  let lastMs = 0;
  let counter = 0;
  return {
    next() {
      randomFillSync(bytes);
      const nowMs = Math.floor(clock.nowMs());
      if (nowMs > lastMs) {
        lastMs = nowMs;
        // The top bit starts at 0, so that a busy millisecond has room to count.
        counter = view.getUint16(6) & (2 ** (counterBits - 1) - 1);
      } else {
        counter += 1;
        if (counter === 2 ** counterBits) {
          // The counter is full: use the next millisecond, which keeps the order (section 6.2).
          lastMs += 1;
          counter = 0;
        }
      }
      view.setUint16(0, Math.floor(lastMs / 2 ** 32));
      view.setUint32(2, lastMs >>> 0);
      view.setUint16(6, 0x7000 | counter);
      view.setUint8(8, 0x80 | (view.getUint8(8) & 0x3f));
      const hex = Buffer.from(bytes.buffer).toString('hex');
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
    },
  };
}
