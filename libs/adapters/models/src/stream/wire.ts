import type { Clock } from '@coxswain/ports';

/** Limits of silence in milliseconds. After them a connection is closed. */
export interface SilenceLimits {
  /** Between the request and the first byte of its answer. */
  readonly firstByteMs: number;
  /** Between two chunks of an answer. */
  readonly betweenBytesMs: number;
}

// A complete answer gets this time to end its stream, so that its connection can be reused.
const SETTLE_MS = 50;

/**
 * Maximum size of one answer on the wire, and of the body of an error. A long answer of 128,000 tokens has about 400
 * bytes per token in events. A provider that never ends its answer must not fill the host's memory.
 */
const ANSWER_MAX_BYTES = 64 * 1_024 * 1_024;
const ERROR_MAX_BYTES = 1_024 * 1_024;

/**
 * The connection of one attempt: counts its requests, watches its bytes, and closes it.
 *
 * W1 Every wait for the connection uses `within`, so that an abort or a silence always ends it.
 * W2 Any byte ends a silence, not only parts of the answer: a provider that sends keep-alives is not silent.
 */
export class Wire {
  /** The number of sent requests. */
  requests = 0;
  /** The status and headers of the last response, once they have arrived. */
  response: { readonly status: number; readonly headers: Headers } | null = null;
  /** The last response was a web page, so the address is not that of a provider. */
  isWebPage = false;
  /**
   * The last response was a redirect. It is not followed, so that a key and a prompt are sent to the configured address
   * only.
   */
  isRedirect = false;
  /** The limit in bytes that the last response exceeded. */
  tooLargeBytes: number | null = null;
  /** The reason why the last request got no response. */
  networkError: unknown = null;
  /** A clause about the exceeded limit of silence. */
  timedOut: string | null = null;

  readonly #clock: Clock;
  readonly #limits: SilenceLimits;
  readonly #outer: AbortSignal;
  readonly #fetch: typeof globalThis.fetch | undefined;
  readonly #controller = new AbortController();
  readonly #cut: Promise<never>;
  #rejectCut: (reason: Error) => void = () => {};
  #lastByteMs: number;
  #limitMs: number;
  #wake = new AbortController();
  #settling = false;
  #closed = false;

  constructor(clock: Clock, limits: SilenceLimits, outer: AbortSignal, fetchWith?: typeof globalThis.fetch) {
    this.#fetch = fetchWith;
    this.#clock = clock;
    this.#limits = limits;
    this.#outer = outer;
    this.#lastByteMs = clock.monotonicMs();
    this.#limitMs = limits.firstByteMs;
    this.#cut = new Promise((_, reject) => {
      this.#rejectCut = reject;
    });
    // `within` rejects for pending waits; a cut without one is not an unhandled rejection.
    this.#cut.catch(() => {});
    outer.addEventListener('abort', this.#onOuterAbort, { once: true });
    if (outer.aborted) this.#onOuterAbort();
    // Ends when the wire is closed or cut. The clock's sleep never rejects.
    void this.#watch();
  }

  /** Aborts the requests of this wire. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** `fetch` with a watched response. */
  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    this.requests++;
    this.response = null;
    this.networkError = null;
    this.#silentFrom(this.#limits.firstByteMs);
    let response: Response;
    try {
      response = await (this.#fetch ?? globalThis.fetch)(input, { ...init, redirect: 'manual' });
    } catch (error) {
      this.networkError = error;
      throw error;
    }
    this.response = { status: response.status, headers: response.headers };
    if (response.ok && /^text\/html\b/i.test(response.headers.get('content-type') ?? '')) {
      this.isWebPage = true;
      await response.body?.cancel();
      throw new Error('the answer is a web page');
    }
    if (response.status >= 300 && response.status < 400 && response.headers.has('location')) {
      this.isRedirect = true;
      await response.body?.cancel();
      throw new Error('the answer is a redirect');
    }
    if (!response.body) return response;
    const maxBytes = response.ok ? ANSWER_MAX_BYTES : ERROR_MAX_BYTES;
    let readBytes = 0;
    const watched = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform: (bytes, controller) => {
          readBytes += bytes.byteLength;
          if (readBytes > maxBytes) {
            this.tooLargeBytes = maxBytes;
            throw new Error(`the answer has more than ${maxBytes} bytes`);
          }
          this.#silentFrom(this.#limits.betweenBytesMs);
          controller.enqueue(bytes);
        },
      }),
    );
    const { status, statusText, headers } = response;
    return new Response(watched, { status, statusText, headers });
  };

  /** Waits for a result of the connection. Rejects if the wire is cut first. */
  within<T>(pending: PromiseLike<T>): Promise<T> {
    return Promise.race([pending, this.#cut]);
  }

  /** A part of the answer has arrived by any way. Models of the embedding program do not use {@link fetch}. */
  partArrived(): void {
    this.#silentFrom(this.#limits.betweenBytesMs);
  }

  /** The answer is complete: waits only briefly for the end of its stream. */
  settle(): void {
    this.#silentFrom(SETTLE_MS);
    this.#settling = true;
  }

  /** Releases everything, and aborts a running stream. */
  close(): void {
    this.#closed = true;
    this.#outer.removeEventListener('abort', this.#onOuterAbort);
    this.#wake.abort();
    this.#controller.abort();
  }

  readonly #onOuterAbort = (): void => {
    this.#cutWith(new Error('the request was aborted'));
  };

  #cutWith(reason: Error): void {
    this.#closed = true;
    this.#rejectCut(reason);
    this.#wake.abort();
    this.#controller.abort(reason);
  }

  #silentFrom(limitMs: number): void {
    if (this.#settling) return;
    this.#lastByteMs = this.#clock.monotonicMs();
    const sooner = limitMs < this.#limitMs;
    this.#limitMs = limitMs;
    // The watcher sleeps for the longer time, and must check again.
    if (sooner) this.#wake.abort();
  }

  async #watch(): Promise<void> {
    while (!this.#closed) {
      const leftMs = this.#lastByteMs + this.#limitMs - this.#clock.monotonicMs();
      if (leftMs <= 0) {
        this.timedOut = `no data arrived for ${this.#limitMs} ms (timeout)`;
        return this.#cutWith(new Error(this.timedOut));
      }
      if (this.#wake.signal.aborted) this.#wake = new AbortController();
      await this.#clock.sleep(leftMs, this.#wake.signal);
    }
  }
}
