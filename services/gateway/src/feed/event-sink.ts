/** Where server-sent events go: as fast as is read, and no faster. */
import type { ServerResponse } from 'node:http';
import type { GatewayContext } from '../gateway-context.ts';

/** Writes as fast as is read, and no faster: what cannot be written is not kept here. */
export class EventSink {
  readonly #out: ServerResponse;
  readonly #context: Pick<GatewayContext, 'metrics' | 'times'>;
  readonly #leaving: AbortController;

  constructor(out: ServerResponse, context: Pick<GatewayContext, 'metrics' | 'times'>, leaving: AbortController) {
    this.#out = out;
    this.#context = context;
    this.#leaving = leaving;
  }

  /** Resolves when more may be written; false where nobody is there any more. */
  text(text: string | Buffer): Promise<boolean> | boolean {
    if (this.#out.destroyed || this.#leaving.signal.aborted) return false;
    return this.#out.write(text) ? true : this.#drained();
  }

  /** Where something waits to be written already, the connection is known to be there or is about to be cut. */
  beat(): void {
    if (!this.#out.destroyed && this.#out.writableLength === 0) this.#out.write(': still here\n\n');
  }

  #drained(): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (goesOn: boolean) => {
        clearTimeout(stalled);
        this.#out.off('drain', drained);
        this.#leaving.signal.removeEventListener('abort', gone);
        resolve(goesOn);
      };
      const drained = () => settle(true);
      const gone = () => settle(false);
      const stalled = setTimeout(() => {
        this.#context.metrics.cutOff.inc({ kind: 'sse' });
        // There is no use in saying why to somebody who does not read.
        this.#out.destroy();
        settle(false);
      }, this.#context.times.stallMs);
      this.#out.once('drain', drained);
      this.#leaving.signal.addEventListener('abort', gone, { once: true });
    });
  }
}
