/** Writes server-sent events with backpressure. */
import type { ServerResponse } from 'node:http';
import type { GatewayContext } from '../context/mod.ts';

/** Writes at the speed at which the client reads. It buffers nothing itself. */
export class EventSink {
  readonly #out: ServerResponse;
  readonly #context: Pick<GatewayContext, 'metrics' | 'times'>;
  readonly #leaving: AbortController;

  constructor(out: ServerResponse, context: Pick<GatewayContext, 'metrics' | 'times'>, leaving: AbortController) {
    this.#out = out;
    this.#context = context;
    this.#leaving = leaving;
  }

  /** Writes a text. Resolves when more may be written; false if the client has disconnected or does not read. */
  text(text: string | Buffer): Promise<boolean> | boolean {
    if (this.#out.destroyed || this.#leaving.signal.aborted) return false;
    return this.#out.write(text) ? true : this.#drained();
  }

  /** Writes a heartbeat comment if no data is buffered. Sending buffered data also reveals a lost connection. */
  heartbeat(): void {
    if (!this.#out.destroyed && this.#out.writableLength === 0) this.#out.write(': still here\n\n');
  }

  #drained(): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (isDrained: boolean) => {
        clearTimeout(stalled);
        this.#out.off('drain', drained);
        this.#leaving.signal.removeEventListener('abort', gone);
        resolve(isDrained);
      };
      const drained = () => settle(true);
      const gone = () => settle(false);
      const stalled = setTimeout(() => {
        this.#context.metrics.cutOff.inc({ kind: 'sse' });
        // A client that does not read would not receive a reason.
        this.#out.destroy();
        settle(false);
      }, this.#context.times.stallMs);
      this.#out.once('drain', drained);
      this.#leaving.signal.addEventListener('abort', gone, { once: true });
    });
  }
}
