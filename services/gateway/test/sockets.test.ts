/** WebSockets: their tokens, their routes, and the number of inspectors. */
import { once } from 'node:events';
import type { BusSession, WatchItem } from '@coxswain/client';
import type { JournalRecord } from '@coxswain/protocol';
import { describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import type { App } from '../src/app/mod.ts';
import type { ConsoleFile } from '../src/console/mod.ts';
import type { GatewayClient } from '../src/context/mod.ts';
import { InspectorSeats } from '../src/socket/mod.ts';
import { appWithoutBus, connected, silence } from './app-without-bus.ts';

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
const socket = { upgrade: 'websocket' };

describe('the token of a WebSocket', () => {
  let authenticate: (token: string) => Promise<null>;
  const refusing = appWithoutBus({ authenticator: { authenticate: (token) => authenticate(token) } });
  /** The tokens that the gateway checks for a request with these headers. */
  const tokensOf = async (headers: Record<string, string>) => {
    const tokens: string[] = [];
    authenticate = async (token) => {
      tokens.push(token);
      return null;
    };
    const { app } = await refusing;
    const answer = await app.inject({ url: '/v1/sessions/s/ws', headers: { host: 'gateway.test', ...headers } });
    expect(answer.json()).toMatchObject({ status: 401, code: 'unauthorized' });
    return tokens;
  };
  test.each([
    ['inspect:cox_abc', 'cox_abc'],
    [':cox_abc', 'cox_abc'],
    ['a:cox:abc', 'cox:abc'],
  ])('is the password of the Basic credentials %s', async (credentials, token) => {
    expect(await tokensOf({ ...socket, authorization: basic(credentials) })).toEqual([token]);
  });
  test.each([
    ['no password', basic('cox_abc')],
    ['an empty password', basic('inspect:')],
    ['a space in the password', basic('inspect:cox abc')],
    ['invalid base64', 'Basic {}'],
    ['a password that is too long', basic(`inspect:${'x'.repeat(9_000)}`)],
  ])('is missing with %s', async (_what, authorization) => {
    expect(await tokensOf({ ...socket, authorization })).toEqual([]);
  });
  test.each([[{}], [{ upgrade: 'h2c' }]])(
    'is no password for other requests, to which browsers add it: %j',
    async (headers) => {
      expect(await tokensOf({ ...headers, authorization: basic('inspect:cox_abc') })).toEqual([]);
    },
  );
});

describe('an upgrade to a WebSocket', () => {
  const asked = (app: App, line: string, headers: readonly string[] = []) =>
    connected(
      app,
      [
        `${line} HTTP/1.1`,
        'host: gateway.test',
        'connection: upgrade',
        'upgrade: websocket',
        'sec-websocket-version: 13',
        'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
        ...headers,
        '\r\n',
      ].join('\r\n'),
    );
  test.each([
    ['a list', 'GET /v1/sessions', 400, 'request_unreadable'],
    ['events', 'GET /v1/sessions/s1/events', 400, 'request_unreadable'],
    ['a command', 'POST /v1/sessions/s1/steer', 400, 'request_unreadable'],
    ['a public route', 'GET /healthz', 400, 'request_unreadable'],
    ['the OpenAPI document', 'GET /openapi.json', 400, 'request_unreadable'],
    ['the console', 'GET /', 400, 'request_unreadable'],
    ['another method on a WebSocket route', 'POST /v1/sessions/s1/ws', 405, 'method_not_allowed'],
    ['an unknown route', 'GET /v1/nothing', 404, 'route_not_found'],
  ])('is rejected for %s', async (_what, line, status, code) => {
    const page: ConsoleFile = {
      path: '/',
      type: 'text/html',
      bytes: Buffer.from('<p>'),
      gzipped: null,
      immutable: false,
    };
    const { app, authorization } = await appWithoutBus({}, {}, [page]);
    try {
      const answer = await asked(app, line, [`authorization: ${authorization}`]);
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect(answer).toContain(`"code":"${code}"`);
    } finally {
      await app.close();
    }
  });
  test('without a token is unauthorized on every route', async () => {
    const { app } = await appWithoutBus();
    try {
      expect(await asked(app, 'GET /v1/sessions')).toMatch(/^HTTP\/1.1 401 /);
    } finally {
      await app.close();
    }
  });
});

test('a record goes to all WebSockets in the same bytes, as text', async () => {
  const record = { n: 1, input: { type: 'owned', note: 'é' } } as unknown as JournalRecord;
  async function* records({ signal }: { signal: AbortSignal }): AsyncGenerator<WatchItem> {
    yield { record };
    yield* silence({ signal });
  }
  const session = { id: 's', ref: { tenant: 'default', sessionId: 's' }, lastNumber: async () => 1, records };
  const clientOf = () => ({ session: () => session as unknown as BusSession }) as unknown as GatewayClient;
  const { app, authorization } = await appWithoutBus({ clientOf });
  const sent = vi.spyOn(WebSocket.prototype, 'send');
  try {
    const url = `${await app.listen({ host: '127.0.0.1', port: 0 })}/v1/sessions/s/ws?from=newest`;
    const headers = { host: 'gateway.test', authorization };
    const received = Array.from({ length: 2 }, async () => {
      const watcher = new WebSocket(url.replace('http', 'ws'), { headers });
      const [data, isBinary] = (await once(watcher, 'message')) as [Buffer, boolean];
      watcher.terminate();
      return { isBinary, message: JSON.parse(String(data)) };
    });
    for (const one of await Promise.all(received))
      expect(one).toEqual({ isBinary: false, message: { type: 'record', n: 1, record } });
    const [first, other] = sent.mock.calls.map(([data]) => data);
    expect(first).toBeInstanceOf(Buffer);
    expect(other).toBe(first);
  } finally {
    sent.mockRestore();
    await app.close();
  }
});

test.each(['ws', 'inspect'])('a WebSocket (%s) that asks for a record beyond the next one is refused', async (path) => {
  async function* records({ signal }: { signal: AbortSignal }): AsyncGenerator<WatchItem> {
    yield { record: { n: 3, input: { type: 'owned' } } as unknown as JournalRecord };
    yield* silence({ signal });
  }
  const session = { id: 's', ref: { tenant: 'default', sessionId: 's' }, lastNumber: async () => 3, records };
  const clientOf = () => ({ session: () => session as unknown as BusSession }) as unknown as GatewayClient;
  const { app, authorization } = await appWithoutBus({ clientOf, times: { replicaLagMs: 20 } });
  try {
    const url = `${await app.listen({ host: '127.0.0.1', port: 0 })}/v1/sessions/s/${path}?from=5`;
    const watcher = new WebSocket(url.replace('http', 'ws'), { headers: { host: 'gateway.test', authorization } });
    const messages: string[] = [];
    watcher.on('message', (data) => messages.push(String(data)));
    const [code, reason] = (await once(watcher, 'close')) as [number, Buffer];
    expect([code, String(reason)]).toEqual([4000, 'record_not_there']);
    // An inspector has messages of another protocol only.
    if (path === 'ws')
      expect(messages.map((text) => JSON.parse(text))).toEqual([
        {
          type: 'problem',
          problem: expect.objectContaining({
            field: 'from',
            detail: expect.stringMatching(/record 5 does not exist: the newest record is 3; .* from record 4 for new/),
          }),
        },
      ]);
  } finally {
    await app.close();
  }
});

describe('the first record of an inspection', () => {
  const made = appWithoutBus();
  const codeOf = async (query: string) => {
    const { app, authorization } = await made;
    const headers = { host: 'gateway.test', authorization };
    const { code, field, detail } = (await app.inject({ url: `/v1/sessions/s/inspect${query}`, headers })).json();
    return code === 'invalid_field' ? { field, detail } : code;
  };
  test.each(['0', '0x5', '1e2', '%205', '1.5', '', 'last'])('is not %j', async (from) =>
    expect(await codeOf(`?from=${from}`)).toEqual({
      field: 'from',
      detail: expect.stringContaining('must be the number of a record (1 or more), or newest'),
    }),
  );
  test.each(['', '?from=7', '?from=newest'])('is valid in %j', async (query) =>
    expect(await codeOf(query)).toBe('upgrade_required'),
  );
});

describe('the number of inspectors', () => {
  const ada = { tenant: 'red', name: 'ada' };
  const bob = { tenant: 'red', name: 'bob' };

  test('is limited for one token, for one tenant, and for all', () => {
    const seats = new InspectorSeats(6, 2);
    seats.acquire(ada);
    const leave = seats.acquire(ada);
    expect(() => seats.acquire(ada)).toThrow(/2 connections already inspect sessions with this token/);
    seats.acquire(bob);
    const ofTenant = /3 connections already inspect sessions of this tenant/;
    expect(() => seats.acquire({ tenant: 'red', name: 'cat' })).toThrow(ofTenant);
    for (const name of ['ada', 'bob', 'cat']) seats.acquire({ tenant: 'blue', name });
    expect(() => seats.acquire({ tenant: 'gold', name: 'ada' })).toThrow(/6 connections already inspect sessions,/);
    leave();
    seats.acquire(ada);
  });
  test('is counted separately for the same name in two tenants', () => {
    const seats = new InspectorSeats(9, 1);
    seats.acquire(ada);
    expect(seats.acquire({ tenant: 'blue', name: 'ada' })).toBeTypeOf('function');
  });
});
