/** An app without a bus, for what the gateway decides itself. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { BusSession, WatchItem } from '@coxswain/client';
import type { Log } from '@coxswain/ports';
import { type App, type ContextParts, createApp, createContext } from '../src/app/mod.ts';
import { newToken, TokenTable } from '../src/auth/mod.ts';
import type { ConsoleFile } from '../src/console/mod.ts';
import type { GatewayClient } from '../src/context/mod.ts';
import { createGuard, type GuardOptions } from '../src/http/mod.ts';

/** A log that discards everything. */
export const SILENT: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** An app, and what its tests need. */
export interface AppWithoutBus {
  readonly app: App;
  /** The header of a token with the scope `admin`. */
  readonly authorization: string;
  /** Aborted to stop the gateway. */
  readonly stopping: AbortController;
}

/** A client whose sessions do not respond. */
const noBus: GatewayClient = {
  session: (id) => ({ id, ref: { tenant: 'default', sessionId: id } }) as unknown as BusSession,
  wire: {
    listSessions: async () => ({ sessions: [], next_cursor: null }),
    pageOfApprovals: async () => ({ approvals: [], more: false }),
  },
  roundTripMs: () => Promise.reject(new Error('there is no bus')),
};

/** Creates an app. The host of its requests is `gateway.test`. */
export async function appWithoutBus(
  change: Partial<ContextParts> = {},
  guard: Partial<GuardOptions> = {},
  consoleFiles: readonly ConsoleFile[] = [],
): Promise<AppWithoutBus> {
  const { token, stored } = newToken({
    name: 'tester',
    tenant: 'default',
    scopes: ['admin'],
    created_at: '2026-01-01T00:00:00Z',
  });
  const now = () => Date.parse('2026-01-01T00:00:00Z');
  const stopping = new AbortController();
  const app = await createApp({
    consoleFiles,
    context: createContext({
      authenticator: new TokenTable([stored], now),
      clientOf: () => noBus,
      ping: () => Promise.reject(new Error('there is no bus')),
      log: SILENT,
      now,
      stopping: stopping.signal,
      ...change,
    }),
    guard: createGuard(() => ({ ownOrigins: ['http://gateway.test'], allowedOrigins: [], ...guard })),
  });
  await app.ready();
  return { app, authorization: `Bearer ${token}`, stopping };
}

/** The records and deltas of a silent session: none, until the watcher leaves. */
export function silence({ signal }: { readonly signal: AbortSignal }): AsyncIterable<WatchItem> {
  const next = async () => {
    if (!signal.aborted) await once(signal, 'abort');
    return { done: true, value: undefined } as const;
  };
  return { [Symbol.asyncIterator]: () => ({ next }) };
}

/** Sends bytes on a new connection to the app. @returns all that it answers, when it has closed the connection. */
export async function connected(app: App, sent: string): Promise<string> {
  const url = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect({ host: url.hostname, port: Number(url.port) }, () => void socket.write(sent, 'latin1'));
    socket.setEncoding('utf8').on('data', (text: string) => {
      received += text;
    });
    socket.once('error', reject);
    socket.once('close', () => resolve(received));
  });
}
