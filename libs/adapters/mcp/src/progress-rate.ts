/** Limits the rate of progress reports: each one becomes a message to all watchers of the session. */
import { MCP_BOUNDS } from './mcp-bounds.ts';

/** Shows the first report of a call at once, then the newest one after each interval. */
export class ProgressRate {
  readonly #show: (text: string) => void;
  #newest: string | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor(show: (text: string) => void) {
    this.#show = show;
  }

  add(text: string): void {
    this.#newest = text;
    if (this.#timer === undefined) this.#showNewest();
  }

  /** Shows the last report, and ends the timer. */
  stop(): void {
    clearTimeout(this.#timer);
    if (this.#newest !== null) this.#show(this.#newest);
    this.#newest = null;
  }

  #showNewest(): void {
    this.#timer = undefined;
    if (this.#newest === null) return;
    this.#show(this.#newest);
    this.#newest = null;
    this.#timer = setTimeout(() => this.#showNewest(), MCP_BOUNDS.progressIntervalMs);
  }
}
