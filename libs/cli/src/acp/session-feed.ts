/** One session's records and deltas for as long as an editor has it open, from one bus to the next: no gap, no repeat. */
import type { Session, WatchItem } from '@coxswain/client';
import type { LivingBus } from './living-bus.ts';

/** Who is fed. Each item is waited for before the next is read. */
export interface Fed {
  take(item: WatchItem): Promise<void>;
  /** It cannot be followed any further, with why. */
  ended(error: Error): void;
}

const AGAIN_AFTER_MS = 250;

/** Follows a session from its first record on until {@link close}. */
export class SessionFeed {
  readonly #bus: LivingBus;
  readonly #id: string;
  readonly #fed: Fed;
  readonly #leaving = new AbortController();
  #next = 1;
  #following: Promise<void> | null = null;

  constructor(bus: LivingBus, id: string, fed: Fed) {
    this.#bus = bus;
    this.#id = id;
    this.#fed = fed;
  }

  /** Starts to follow, also a session that has no record yet. Does nothing while it follows. */
  begin(): void {
    this.#following ??= this.#follow().catch((error: Error) => {
      this.#following = null;
      if (!this.#leaving.signal.aborted) this.#fed.ended(error);
    });
  }

  /** The session on the bus that is open now. */
  async session(): Promise<Session> {
    return (await this.#bus.open(this.#leaving.signal)).client.session(this.#id);
  }

  /** Leaves the session, which goes on. */
  close(): void {
    this.#leaving.abort(new Error('the session is no longer open here'));
  }

  async #follow(): Promise<void> {
    const { signal: leaving } = this.#leaving;
    while (!leaving.aborted) {
      const { client, gone } = await this.#bus.open(leaving);
      const items = client
        .session(this.#id)
        .records({ deltas: true, from: this.#next, signal: AbortSignal.any([leaving, gone]) });
      try {
        for await (const item of items) {
          await this.#fed.take(item);
          if (item.record) this.#next = item.record.n + 1;
        }
      } catch (error) {
        // With its instance the connection goes, in whatever way it was used just then.
        if (!gone.aborted) throw error;
      }
      if (!leaving.aborted) await new Promise((resolve) => setTimeout(resolve, AGAIN_AFTER_MS));
    }
  }
}
