/** Creates the dependencies of the routes. */
import { EVENT_STREAM_LIVENESS } from '@coxswain/protocol';
import { RequestRates } from '@coxswain/session';
import {
  createMetrics,
  GATEWAY_BOUNDS,
  type GatewayContext,
  type GatewayTimes,
  KnownSessions,
  MemoryShares,
  ReadShares,
  UnreadResponses,
} from '../context/mod.ts';
import { JournalPages, SessionFeeds } from '../feed/mod.ts';
import { FoldCache, InspectorSeats } from '../socket/mod.ts';

/** The parts of a context that have no default, and any other part. */
export type ContextParts = Pick<GatewayContext, 'authenticator' | 'clientOf' | 'ping' | 'log' | 'now' | 'stopping'> &
  Omit<Partial<GatewayContext>, 'times'> & { readonly times?: Partial<GatewayTimes> | undefined };

/** Creates a context. Other parts have the limits of `GATEWAY_BOUNDS` by default. */
export function createContext({ times, ...parts }: ContextParts): GatewayContext {
  const { now, metrics = createMetrics() } = parts;
  const { requestsBurst, requestsPerSecond, ratesRemembered } = GATEWAY_BOUNDS;
  return {
    feeds: new SessionFeeds(metrics),
    inspectors: new InspectorSeats(),
    folds: new FoldCache(GATEWAY_BOUNDS.keptFoldsMax),
    known: new KnownSessions(now),
    expensiveReads: new ReadShares({ all: GATEWAY_BOUNDS.expensiveReadsMax }),
    exports: new ReadShares({ all: GATEWAY_BOUNDS.exportsMax, perPrincipal: GATEWAY_BOUNDS.exportsPerPrincipalMax }),
    stateReads: new ReadShares({ all: GATEWAY_BOUNDS.stateReadsMax }),
    pages: new JournalPages(),
    unread: new UnreadResponses(),
    bodies: new MemoryShares(GATEWAY_BOUNDS.bodiesMaxBytes),
    socketMessages: new MemoryShares(GATEWAY_BOUNDS.socketMessagesMaxBytes),
    rates: new RequestRates(requestsBurst, requestsPerSecond, ratesRemembered, now),
    metrics,
    ...parts,
    times: {
      heartbeatMs: EVENT_STREAM_LIVENESS.heartbeatMs,
      recheckMs: GATEWAY_BOUNDS.recheckMs,
      stallMs: GATEWAY_BOUNDS.watcherStallMs,
      replicaLagMs: GATEWAY_BOUNDS.replicaLagMs,
      waitsEndMs: GATEWAY_BOUNDS.waitsEndMs,
      ...times,
    },
  };
}
