/** An app without a bus: for what is decided before anything is asked of one. */
import { connect } from 'node:net';
import type { BusSession } from '@coxswain/client';
import type { Log } from '@coxswain/ports';
import { RequestRates } from '@coxswain/session';
import { newToken, TokenTable } from '../src/auth/token-file.ts';
import type { ConsoleFile } from '../src/console/console-files.ts';
import { type App, createApp } from '../src/create-app.ts';
import { JournalPages } from '../src/feed/journal-pages.ts';
import { SessionFeeds } from '../src/feed/session-feeds.ts';
import { GATEWAY_BOUNDS } from '../src/gateway-bounds.ts';
import type { GatewayClient, GatewayContext } from '../src/gateway-context.ts';
import { createMetrics } from '../src/gateway-metrics.ts';
import { KnownSessions } from '../src/known-sessions.ts';
import { LimitedReads } from '../src/limited-reads.ts';
import { createGuard, type GuardOptions } from '../src/request-guard.ts';
import { FoldCache } from '../src/socket/fold-cache.ts';
import { InspectorSeats } from '../src/socket/inspector-seats.ts';

/** Nothing is told. */
export const SILENT: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** What a test has of it. */
export interface AppOnNothing {
  readonly app: App;
  /** Of somebody who may do everything. */
  readonly authorization: string;
  readonly stopping: AbortController;
}

/** A client all of whose sessions do not answer: nothing in these tests gets so far. */
const noBus: GatewayClient = {
  session: (id) => ({ id, ref: { tenant: 'default', sessionId: id } }) as unknown as BusSession,
  wire: { listSessions: async () => ({ sessions: [], next_cursor: null }), approvals: async () => [] },
  roundTripMs: () => Promise.reject(new Error('there is no bus')),
};

/** Makes one. The host of its requests is `gateway.test`. */
export async function appOnNothing(
  change: Partial<GatewayContext> = {},
  guard: Partial<GuardOptions> = {},
  consoleFiles: readonly ConsoleFile[] = [],
): Promise<AppOnNothing> {
  const { token, stored } = newToken({
    name: 'tester',
    tenant: 'default',
    scopes: ['admin'],
    created_at: '2026-01-01T00:00:00Z',
  });
  const now = () => Date.parse('2026-01-01T00:00:00Z');
  const metrics = createMetrics();
  const stopping = new AbortController();
  const app = await createApp({
    consoleFiles,
    context: {
      authenticator: new TokenTable([stored], now),
      clientOf: () => noBus,
      ping: () => Promise.reject(new Error('there is no bus')),
      feeds: new SessionFeeds(metrics),
      inspectors: new InspectorSeats(),
      folds: new FoldCache(GATEWAY_BOUNDS.keptFoldsMax),
      known: new KnownSessions(now),
      expensiveReads: new LimitedReads(2, 2),
      pages: new JournalPages(new LimitedReads(2, 2)),
      rates: new RequestRates(GATEWAY_BOUNDS.requestsBurst, 1, 10, now),
      metrics,
      log: SILENT,
      now,
      stopping: stopping.signal,
      times: { heartbeatMs: 10_000, recheckMs: 10_000, stallMs: 10_000, waitsEndMs: 10_000 },
      ...change,
    },
    guard: createGuard(() => ({ ownOrigins: ['http://gateway.test'], allowedOrigins: [], ...guard })),
  });
  await app.ready();
  return { app, authorization: `Bearer ${token}`, stopping };
}

/** What an app answers on a connection of its own to what is sent, up to the connection's end. */
export async function connected(app: App, sent: string): Promise<string> {
  const url = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  return new Promise((resolve, reject) => {
    let told = '';
    const socket = connect({ host: url.hostname, port: Number(url.port) }, () => void socket.write(sent, 'latin1'));
    socket.setEncoding('utf8').on('data', (text: string) => {
      told += text;
    });
    socket.once('error', reject);
    socket.once('close', () => resolve(told));
  });
}
