import type { BusClient, BusWire } from '@coxswain/client';
import type { Log, SpanSink } from '@coxswain/ports';
import type { DemoStart, StartOptions } from '@coxswain/protocol';
import type { RequestRates } from '@coxswain/session';
import type { FastifyRequest } from 'fastify';
import type { Authenticator, Principal, Scope } from '../auth/mod.ts';
import type { JournalPages, SessionFeeds } from '../feed/mod.ts';
import type { FoldCache, InspectorSeats } from '../socket/mod.ts';
import type { GatewayMetrics } from './gateway-metrics.ts';
import type { KnownSessions } from './known-sessions.ts';
import type { MemoryShare, MemoryShares } from './memory-shares.ts';
import { Problem } from './problem.ts';
import type { ReadShares } from './read-shares.ts';
import type { UnreadResponses } from './unread-responses.ts';

/** The part of the client that the gateway uses. */
export type GatewayClient = Pick<BusClient, 'session' | 'roundTripMs'> & {
  readonly wire: Pick<BusWire, 'listSessions' | 'pageOfApprovals'>;
};

/** Start options of the folder in which the gateway was started. */
export interface StartOffers {
  options(): Promise<StartOptions>;
  /** Writes the files of the demo and resolves with its start body. Null if there is no demo. */
  readonly prepareDemo: (() => Promise<DemoStart>) | null;
}

/** The dependencies of all routes. */
export interface GatewayContext {
  readonly authenticator: Authenticator;
  /** The client of a tenant; null if this gateway has no key for the tenant. */
  readonly clientOf: (tenant: string) => GatewayClient | null;
  /** Contract: rejects with the reason while NATS does not respond. */
  readonly ping: () => Promise<void>;
  readonly feeds: SessionFeeds;
  readonly inspectors: InspectorSeats;
  readonly folds: FoldCache;
  readonly known: KnownSessions;
  /** Slots for lists, trees and whole journals. */
  readonly expensiveReads: ReadShares;
  /** Slots of exports: each is read at the speed of its client, so it occupies a slot for long. */
  readonly exports: ReadShares;
  /** Slots for states and newest records of sessions. */
  readonly stateReads: ReadShares;
  /** Journal pages, for readers and for watchers that are behind. */
  readonly pages: JournalPages;
  readonly unread: UnreadResponses;
  /** Memory for the bodies of requests, from before they are read until they are handled. */
  readonly bodies: MemoryShares;
  /** Memory for messages of WebSockets that are not complete, and for answers that are not read. */
  readonly socketMessages: MemoryShares;
  /** Options of a start form; null if the gateway has no folder of its own. */
  readonly starts?: StartOffers | null | undefined;
  /** Rate limits of requests and WebSocket commands, per principal. */
  readonly rates: RequestRates;
  readonly metrics: GatewayMetrics;
  /** Receives spans. Without it, the gateway records none. */
  readonly spans?: SpanSink | null | undefined;
  readonly log: Log;
  readonly now: () => number;
  /** Aborts when the gateway starts to stop. */
  readonly stopping: AbortSignal;
  readonly times: GatewayTimes;
}

/** Intervals and timeouts of long-lived connections, in milliseconds. */
export interface GatewayTimes {
  /** Interval between heartbeats of an event stream. */
  readonly heartbeatMs: number;
  /** Interval between checks of a watcher's token, and between pings of a WebSocket. */
  readonly recheckMs: number;
  readonly stallMs: number;
  /** Time within which a record that a client has already received must be found. */
  readonly replicaLagMs: number;
  readonly waitsEndMs: number;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The authenticated client; null on public routes. */
    principal: Principal | null;
    /** The token, which is checked again while the client watches. */
    bearer: string | null;
    /** The memory of the body, which is released at the end of the response at the latest; null without a body. */
    bodyShare: MemoryShare | null;
  }
  interface FastifyContextConfig {
    /** The required scope; `any` if every valid token suffices; null on a public route. */
    scope?: Scope | 'any' | null;
    /** Whether the route is a page to which other sites may link. */
    page?: boolean;
  }
}

/**
 * The principal of a request.
 * @throws Error on a public route.
 */
export function principalOf({ principal }: FastifyRequest): Principal {
  if (principal === null) throw new Error('a route that needs a token has no principal');
  return principal;
}

/**
 * The client for the sessions of the principal's tenant.
 * @throws Problem `not_permitted` (403).
 */
export function clientFor(context: GatewayContext, principal: Principal): GatewayClient {
  const client = context.clientOf(principal.tenant);
  if (client) return client;
  throw new Problem('not_permitted', `this gateway does not serve the tenant ${principal.tenant}`);
}

const BUS_ANSWERS_WITHIN_MS = 2_000;

/**
 * Checks that NATS responds within two seconds.
 * @throws Problem `nats_unreachable` (503).
 */
export async function expectBus({ ping }: Pick<GatewayContext, 'ping'>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`no response within ${BUS_ANSWERS_WITHIN_MS} ms`)),
      BUS_ANSWERS_WITHIN_MS,
    );
  });
  try {
    await Promise.race([ping(), late]);
  } catch (error) {
    const message = `NATS does not respond: ${(error as Error).message}`;
    throw new Problem('nats_unreachable', message, { headers: { 'retry-after': '2' } });
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Counts one request against the principal's rate limit.
 * @throws Problem `rate_limited` (429).
 */
export function countRequest(context: GatewayContext, principal: Principal): void {
  const seconds = takeRequest(context, principal);
  if (seconds > 0) throw rateLimitedProblem(seconds);
}

/**
 * Counts one request against the principal's rate limit, without an exception.
 * @returns 0 if it is within the limit; otherwise the whole seconds until the next one is.
 */
export function takeRequest({ rates }: GatewayContext, { tenant, name }: Principal): number {
  return rates.take(`${tenant}/${name}`);
}

/** The problem of a request beyond the rate limit (429). */
export function rateLimitedProblem(seconds: number): Problem {
  return new Problem('rate_limited', `rate limit exceeded; retry in ${seconds} s`, {
    headers: { 'retry-after': String(seconds) },
  });
}
