import type { BusClient, ClientWire } from '@coxswain/client';
import type { Log, SpanSink } from '@coxswain/ports';
import type { DemoStart, StartOptions } from '@coxswain/protocol';
import type { RequestRates } from '@coxswain/session';
import type { FastifyRequest } from 'fastify';
import type { Authenticator, Principal, Scope } from './auth/principal.ts';
import type { JournalPages } from './feed/journal-pages.ts';
import type { SessionFeeds } from './feed/session-feeds.ts';
import type { GatewayMetrics } from './gateway-metrics.ts';
import type { KnownSessions } from './known-sessions.ts';
import type { LimitedReads } from './limited-reads.ts';
import { Problem } from './problem.ts';
import type { InspectorSeats } from './socket/inspector-seats.ts';
import type { KeptFolds } from './socket/kept-folds.ts';

/** The client as the gateway uses it. */
export type GatewayClient = Pick<BusClient, 'session' | 'roundTripMs'> & {
  readonly wire: Pick<ClientWire, 'listSessions' | 'approvals'>;
};

/** What can be started from the folder in which the gateway was started. */
export interface StartOffers {
  options(): Promise<StartOptions>;
  /** Writes the files of a demo, and resolves with its start; null where there is no demo. */
  readonly prepareDemo: (() => Promise<DemoStart>) | null;
}

/** The dependencies of every route. */
export interface GatewayContext {
  readonly authenticator: Authenticator;
  /** The sessions of a tenant; null where this gateway has no key for it. */
  readonly clientOf: (tenant: string) => GatewayClient | null;
  /** Contract: rejects, with why, while the bus does not answer. */
  readonly ping: () => Promise<void>;
  readonly feeds: SessionFeeds;
  readonly inspectors: InspectorSeats;
  readonly folds: KeptFolds;
  readonly known: KnownSessions;
  /** Lists, trees and exports. */
  readonly expensiveReads: LimitedReads;
  /** Journals, a page at a time: for readers, and for watchers who are behind. */
  readonly pages: JournalPages;
  /** What a form can offer to start; null where the gateway has no folder of its own. */
  readonly starts?: StartOffers | null | undefined;
  /** Requests, and commands of WebSockets, by whose token it is. */
  readonly rates: RequestRates;
  readonly metrics: GatewayMetrics;
  /** Whoever takes spans; nobody where it is left out. */
  readonly spans?: SpanSink | null | undefined;
  readonly log: Log;
  readonly now: () => number;
  /** Aborts when the gateway is about to end. */
  readonly stopping: AbortSignal;
  readonly times: GatewayTimes;
}

/** Intervals and bounds of connections that stay open, in milliseconds. */
export interface GatewayTimes {
  /** Between two heartbeats of an event stream. */
  readonly heartbeatMs: number;
  /** Between two checks of a watcher's token, and two pings of a WebSocket. */
  readonly recheckMs: number;
  readonly stallMs: number;
  readonly waitsEndMs: number;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Who was let in; null on open addresses. */
    principal: Principal | null;
    /** What they have shown, to be looked at again while they watch. */
    bearer: string | null;
  }
  interface FastifyContextConfig {
    /** What a token must be allowed, `any` where every token will do; null on an address that is open to all. */
    scope?: Scope | 'any' | null;
    /** A page that people are led to by links, also from other sites. */
    page?: boolean;
  }
}

/** Who a request is from. On an address that needs a token there is somebody. */
export function principalOf({ principal }: FastifyRequest): Principal {
  if (principal === null) throw new Error('a route that needs a token has no principal');
  return principal;
}

/** The sessions that a request is about. @throws Problem `not_permitted`. */
export function clientFor(context: GatewayContext, principal: Principal): GatewayClient {
  const client = context.clientOf(principal.tenant);
  if (client) return client;
  throw new Problem('not_permitted', `this gateway does not serve the tenant ${principal.tenant}`);
}

const BUS_ANSWERS_WITHIN_MS = 2_000;

/** Asks the bus for nothing. @throws Problem `nats_unreachable` where it does not answer in time. */
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

/** Takes one of the requests that somebody has. @throws Problem `rate_limited` where more has come from them than is taken. */
export function takeTurn(context: GatewayContext, principal: Principal): void {
  const seconds = turnIn(context, principal);
  if (seconds > 0) throw rateLimited(seconds);
}

/** The same, for what is read before it can be refused. @returns 0, or after how many whole seconds the next one will be taken. */
export function turnIn({ rates }: GatewayContext, { tenant, name }: Principal): number {
  return rates.take(`${tenant}/${name}`);
}

/** More than is taken. */
export function rateLimited(seconds: number): Problem {
  return new Problem('rate_limited', `rate limit exceeded; retry in ${seconds} s`, {
    headers: { 'retry-after': String(seconds) },
  });
}
