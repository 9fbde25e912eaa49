/**
 * The records and deltas of one session while an editor has it open, across bus connections. Records have neither gaps
 * nor repeats.
 */
import type { Session, WatchItem } from '@coxswain/client';
import type { CurrentBus } from './current-bus.ts';

/** The consumer of a feed. Each item is awaited before the next is read. */
export interface FeedConsumer {
  take(item: WatchItem): Promise<void>;
  /** Called when the session can no longer be followed. */
  ended(error: Error): void;
}

/** Follows a session from its first record until {@link close}. */
export class SessionFeed {
  readonly #bus: CurrentBus;
  readonly #id: string;
  readonly #consumer: FeedConsumer;
  readonly #leaving = new AbortController();
  #next = 1;
  #following: Promise<void> | null = null;

  constructor(bus: CurrentBus, id: string, consumer: FeedConsumer) {
    this.#bus = bus;
    this.#id = id;
    this.#consumer = consumer;
  }

  /** Starts following, even if the session has no record yet. Has no effect while it follows. */
  begin(): void {
    this.#following ??= this.#follow().catch((error: Error) => {
      this.#following = null;
      if (!this.#leaving.signal.aborted) this.#consumer.ended(error);
    });
  }

  /** The session's handle on the open bus. */
  async session(): Promise<Session> {
    return (await this.#bus.open(this.#leaving.signal)).client.session(this.#id);
  }

  /** Stops following. The session continues. */
  close(): void {
    this.#leaving.abort(new Error('the session is no longer open here'));
  }

  async #follow(): Promise<void> {
    const items = this.#bus.follow(this.#leaving.signal, (client, signal) =>
      client.session(this.#id).records({ deltas: true, from: this.#next, signal }),
    );
    for await (const item of items) {
      await this.#consumer.take(item);
      if (item.record) this.#next = item.record.n + 1;
    }
  }
}
