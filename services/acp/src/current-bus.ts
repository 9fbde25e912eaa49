import { type BusClient, CoxswainError } from '@coxswain/client';
import { ACP_BOUNDS } from './acp-bounds.ts';
import { deferred } from './deferred.ts';

/** An open bus. */
export interface OpenBus {
  readonly client: BusClient;
  /** Aborts when the instance has ended, so that the service needs another bus. */
  readonly gone: AbortSignal;
}

/** The current connection to a bus. An instance may stop while an editor is open, and another one may start. */
export class CurrentBus {
  #bus: OpenBus | null = null;
  #latest: BusClient | null = null;
  #opened = deferred<void>();

  /** Sets the open bus; null while there is none. */
  set(bus: OpenBus | null): void {
    this.#bus = bus;
    if (bus) {
      this.#latest = bus.client;
      this.#opened.resolve();
    } else this.#opened = deferred<void>();
  }

  /** The client of the newest bus, which may have closed. @throws if no bus has opened yet. */
  get latest(): BusClient {
    if (!this.#latest) throw new Error('no bus has opened');
    return this.#latest;
  }

  /**
   * Waits for an open bus.
   * @throws CoxswainError `nats_unreachable` if none opens within `ACP_BOUNDS.busWithinMs`; the reason of `signal`.
   */
  async open(signal?: AbortSignal): Promise<OpenBus> {
    if (this.#bus && !this.#bus.gone.aborted) return this.#bus;
    // An aborted signal sends no further event, also none at the time limit.
    signal?.throwIfAborted();
    const late = AbortSignal.timeout(ACP_BOUNDS.busWithinMs);
    const ended = deferred<never>();
    const end = () => ended.reject(signal?.aborted ? signal.reason : noBus());
    const either = signal ? AbortSignal.any([late, signal]) : late;
    either.addEventListener('abort', end, { once: true });
    try {
      while (!this.#bus || this.#bus.gone.aborted) await Promise.race([this.#next(), ended.promise]);
      return this.#bus;
    } finally {
      either.removeEventListener('abort', end);
    }
  }

  /**
   * Runs a task on the bus. If that bus closes meanwhile, the task runs again on the next one: it must be safe to
   * repeat.
   * @throws the error of the task; the errors of {@link open}.
   */
  async use<T>(task: (bus: OpenBus) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const bus = await this.open();
      try {
        return await task(bus);
      } catch (error) {
        if (attempt >= REPEATED_MAX || !isTrouble(error) || !(await hasGone(bus))) throw error;
      }
    }
  }

  /**
   * Follows a source on one bus after another, until `leaving` aborts.
   * @param read opens the source on a bus, after its last item. The source must end when the signal aborts.
   * @throws the errors of {@link open}; an error of the source while the instance runs.
   */
  async *follow<Item>(
    leaving: AbortSignal,
    read: (client: BusClient, signal: AbortSignal) => AsyncIterable<Item>,
  ): AsyncGenerator<Item, void, undefined> {
    while (!leaving.aborted) {
      const { client, gone } = await this.open(leaving);
      try {
        yield* read(client, AbortSignal.any([leaving, gone]));
      } catch (error) {
        // When the instance stops, the connection can fail with any error.
        if (!gone.aborted) throw error;
      }
      if (!leaving.aborted) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  /** Waits for the next bus. A closed bus may stay set for a moment. */
  async #next(): Promise<void> {
    await this.#opened.promise;
    if (this.#bus?.gone.aborted) await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The pause before the next bus is opened or the same one is read again. */
const RETRY_MS = 250;
const REPEATED_MAX = 8;
/** A stopped instance is detected through its file, which is polled every 500 ms. */
const NOTICE_TIMEOUT_MS = 3_000;
const TROUBLES: readonly unknown[] = [
  'bus_not_prepared',
  'client_closed',
  'command_not_stored',
  // The NATS client library's errors, which have no catalogued code.
  'internal',
  'nats_unreachable',
  'receipt_timeout',
];

/** Whether a closed bus may be the cause of an error. */
function isTrouble(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return code === undefined || TROUBLES.includes(code);
}

async function hasGone({ gone }: OpenBus): Promise<boolean> {
  if (gone.aborted) return true;
  return new Promise((resolve) => {
    const late = setTimeout(() => resolve(gone.aborted), NOTICE_TIMEOUT_MS);
    const noticed = () => {
      clearTimeout(late);
      resolve(true);
    };
    gone.addEventListener('abort', noticed, { once: true });
  });
}

function noBus(): CoxswainError {
  return new CoxswainError('nats_unreachable', 'nats_unreachable: no bus is open; run cox doctor for more');
}
