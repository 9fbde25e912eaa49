import type { Session } from '@coxswain/client';
import { sessionKey } from '@coxswain/protocol';
import type { Principal } from '../auth/mod.ts';
import { ConnectionShares, GATEWAY_BOUNDS, type GatewayMetrics, Problem } from '../context/mod.ts';
import type { SocketKind } from '../socket/mod.ts';
import { SessionFeed } from './session-feed.ts';

interface FollowedSession {
  readonly tenant: string;
  feed: SessionFeed;
  watchers: number;
  leaving: NodeJS.Timeout | undefined;
}

/** A watcher's slot. */
export interface Seat {
  readonly feed: SessionFeed;
  /** Releases the slot. Further calls change nothing. */
  leave(): void;
}

/**
 * Maximum numbers of watchers; each tenant has half of `all`. `lingersMs` is the time in milliseconds for which a session is followed without
 * watchers.
 */
export interface FeedBounds {
  readonly perSession: number;
  readonly perPrincipal: number;
  readonly all: number;
  readonly lingersMs: number;
}

/** The default limits. */
export const FEED_BOUNDS: FeedBounds = {
  perSession: GATEWAY_BOUNDS.watchersPerSessionMax,
  perPrincipal: GATEWAY_BOUNDS.watchersPerPrincipalMax,
  all: GATEWAY_BOUNDS.watchersMax,
  lingersMs: GATEWAY_BOUNDS.feedLingersMs,
};

/** The sessions that this process follows, each with one feed. */
export class SessionFeeds {
  readonly #bounds: FeedBounds;
  readonly #metrics: GatewayMetrics;
  readonly #followed = new Map<string, FollowedSession>();
  /** The number of followed sessions of each tenant that has any. */
  readonly #ofTenant = new Map<string, number>();
  readonly #shares: ConnectionShares;

  constructor(metrics: GatewayMetrics, bounds: FeedBounds = FEED_BOUNDS) {
    this.#metrics = metrics;
    this.#bounds = bounds;
    this.#shares = new ConnectionShares(bounds, tooManyProblem);
  }

  /**
   * Acquires a slot and starts to follow the session if necessary.
   * @throws Problem `too_many_watchers` (429).
   */
  join(session: Session, principal: Principal, kind: 'sse' | SocketKind): Seat {
    const key = sessionKey(session.ref);
    this.#shares.expectRoom(principal);
    let followed = this.#followed.get(key);
    if (followed && followed.watchers >= this.#bounds.perSession)
      throw tooManyProblem('this session', this.#bounds.perSession);
    if (!followed || followed.feed.ended) {
      const { tenant } = session.ref;
      const feed = new SessionFeed(session, () => this.#bytesEach(tenant));
      if (!followed) this.#count(tenant, 1);
      // The watchers of an ended feed keep that feed until they leave.
      followed = { tenant, feed, watchers: 0, leaving: undefined };
      this.#followed.set(key, followed);
      for (const other of this.#followed.values()) other.feed.trim();
    }
    const joined = followed;
    clearTimeout(joined.leaving);
    joined.watchers++;
    const endWatching = this.#shares.add(principal);
    this.#metrics.watchers.inc({ kind });
    this.#metrics.feeds.set(this.#followed.size);
    let seated = true;
    return {
      feed: joined.feed,
      leave: () => {
        if (!seated) return;
        seated = false;
        joined.watchers--;
        endWatching();
        this.#metrics.watchers.dec({ kind });
        if (joined.watchers === 0) this.#release(key, joined);
      },
    };
  }

  /** Stops all feeds. */
  async stop(): Promise<void> {
    const all = [...this.#followed.values()];
    this.#followed.clear();
    this.#ofTenant.clear();
    for (const { feed, leaving } of all) {
      clearTimeout(leaving);
      feed.stop();
    }
    await Promise.all(all.map(({ feed }) => feed.done));
  }

  /**
   * Keeps the feed for some seconds: a client that lost its connection reconnects and finds the items that it missed.
   */
  #release(key: string, followed: FollowedSession): void {
    const drop = () => {
      followed.feed.stop();
      if (this.#followed.get(key) === followed) {
        this.#followed.delete(key);
        this.#count(followed.tenant, -1);
      }
      this.#metrics.feeds.set(this.#followed.size);
    };
    // A feed without a record may belong to a session that does not exist, for example because its start was rejected.
    if (followed.feed.ended || followed.feed.newest === 0) drop();
    else {
      followed.leaving = setTimeout(drop, this.#bounds.lingersMs);
      followed.leaving.unref();
    }
  }

  #count(tenant: string, one: 1 | -1): void {
    const left = (this.#ofTenant.get(tenant) ?? 0) + one;
    if (left > 0) this.#ofTenant.set(tenant, left);
    else this.#ofTenant.delete(tenant);
  }

  /** Each tenant gets an equal share, and so does each of its feeds. */
  #bytesEach(tenant: string): number {
    const share = GATEWAY_BOUNDS.feedsMaxBytes / Math.max(1, this.#ofTenant.size);
    return Math.min(GATEWAY_BOUNDS.feedMaxBytes, share / Math.max(1, this.#ofTenant.get(tenant) ?? 0));
  }
}

function tooManyProblem(whose: string, most: number): Problem {
  const message = `${most} connections already follow ${whose}, the maximum of this gateway`;
  return new Problem('too_many_watchers', message, { headers: { 'retry-after': '5' } });
}
