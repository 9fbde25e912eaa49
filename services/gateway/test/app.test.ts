/** What the app decides without the bus. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { NoHostError, type Session } from '@coxswain/client';
import type { EndedSpan } from '@coxswain/protocol';
import { FORMAT_VERSIONS, RequestRates } from '@coxswain/session';
import { describe, expect, test, vi } from 'vitest';
import {
  createMetrics,
  GATEWAY_BOUNDS,
  type GatewayClient,
  type KnownSessions,
  MemoryShares,
  Problem,
  problemFrom,
} from '../src/context/mod.ts';
import { SessionFeeds } from '../src/feed/mod.ts';
import { appWithoutBus, connected, SILENT, silence } from './app-without-bus.ts';

const host = 'gateway.test';

test('every response forbids caching, content sniffing and framing', async () => {
  const { app, authorization } = await appWithoutBus();
  for (const url of ['/healthz', '/v1/sessions', '/nowhere']) {
    const { headers } = await app.inject({ url, headers: { host, authorization } });
    expect(headers, url).toMatchObject({
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    });
  }
});

test('/v1/whoami returns the principal of a valid token with any scope', async () => {
  const end = Date.parse('2026-02-01T00:00:00Z');
  const holder = { name: 'alice', tenant: 'team', scopes: new Set(['steer' as const]), expiresAt: end };
  const { app } = await appWithoutBus({
    authenticator: { authenticate: async (token) => (token === 't' ? holder : null) },
  });
  const ask = (headers: Record<string, string>) => app.inject({ url: '/v1/whoami', headers: { host, ...headers } });
  expect((await ask({ authorization: 'Bearer t' })).json()).toEqual({
    name: 'alice',
    tenant: 'team',
    scopes: ['steer'],
    expires_at: '2026-02-01T00:00:00.000Z',
  });
  expect((await ask({ authorization: 'Bearer other' })).json()).toMatchObject({ status: 401, code: 'unauthorized' });
  const withQuery = await app.inject({ url: '/v1/whoami?token=t', headers: { host } });
  const detail = 'send the header authorization: Bearer TOKEN; a token in the address does not count';
  expect(withQuery.json()).toMatchObject({ status: 401, code: 'unauthorized', detail });
});

test('start options and the demo are those that the gateway was given; by default there are none', async () => {
  const bare = await appWithoutBus();
  const ask = ({ app, authorization }: typeof bare, method: 'GET' | 'POST', url: string) =>
    app.inject({ method, url, headers: { host, authorization } });
  expect((await ask(bare, 'GET', '/v1/start-options')).json()).toEqual({ folder: null, personas: [], has_demo: false });
  expect((await ask(bare, 'POST', '/v1/demo')).json()).toMatchObject({ status: 404, code: 'not_found' });
  const demo = { prompt: 'Play.', root: '/d', model: 'scripted//d/script.yaml', persona: { name: 'clerk' } };
  const options = { folder: '/work', personas: [], has_demo: true };
  const given = await appWithoutBus({ starts: { options: async () => options, prepareDemo: async () => demo } });
  expect((await ask(given, 'GET', '/v1/start-options')).json()).toEqual(options);
  expect((await ask(given, 'POST', '/v1/demo')).json()).toEqual(demo);
});

test('the event stream of a silent session has heartbeats', async () => {
  const session = { id: 's', ref: { tenant: 'default', sessionId: 's' }, lastNumber: async () => 0, records: silence };
  const { app, authorization, stopping } = await appWithoutBus({
    clientOf: () => ({ session: () => session as unknown as Session }) as unknown as GatewayClient,
    times: { heartbeatMs: 5, recheckMs: 10_000, stallMs: 10_000, waitsEndMs: 10_000 },
    known: { expect: async () => undefined } as unknown as KnownSessions,
  });
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const headers = { host, authorization, accept: 'text/event-stream' };
  const [answer] = (await once(
    request({ host: '127.0.0.1', port, path: '/v1/sessions/s/events', headers }).end(),
    'response',
  )) as [IncomingMessage];
  let beats = 0;
  for await (const piece of answer.setEncoding('utf8')) {
    beats += String(piece).split(': still here').length - 1;
    if (beats >= 3) break;
  }
  expect(beats).toBeGreaterThanOrEqual(3);
  stopping.abort();
  await app.close();
});

test('an event stream ends with its connection if the client reads nothing when its token is removed', async () => {
  // Larger than the buffers of a connection.
  const record = { n: 1, input: { type: 'timer' }, text: 'x'.repeat(32 * 1024 * 1024) };
  const session = {
    ...{ id: 's', ref: { tenant: 'default', sessionId: 's' }, lastNumber: async () => 1 },
    async *records({ signal }: { readonly signal: AbortSignal }) {
      yield { record };
      await once(signal, 'abort');
    },
    async *journal() {
      yield { record, size: 1, seq: 1 };
    },
  };
  let isRemoved = false;
  const holder = { name: 'alice', tenant: 'default', scopes: new Set(['read' as const]), expiresAt: null };
  const { app } = await appWithoutBus({
    authenticator: { authenticate: async () => (isRemoved ? null : holder) },
    clientOf: () => ({ session: () => session as unknown as Session }) as unknown as GatewayClient,
    times: { recheckMs: 20, stallMs: 2_000 },
  });
  const { hostname, port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const requested = once(app.server, 'request');
  const socket = connect({ host: hostname, port: Number(port) });
  socket.pause().on('error', () => undefined);
  socket.write(
    `GET /v1/sessions/s/events HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer t\r\naccept: text/event-stream\r\n\r\n`,
  );
  const [, response] = await requested;
  await expect.poll(() => response.writableNeedDrain, { timeout: 20_000 }).toBe(true);
  isRemoved = true;
  await once(response, 'close');
  expect(response.writableEnded).toBe(true);
  socket.destroy();
  await app.close();
});

test('requests beyond the rate limit get 429 with retry-after', async () => {
  const { app, authorization } = await appWithoutBus({ rates: new RequestRates(2, 0.1, 10, () => 0) });
  const statuses = [];
  for (let i = 0; i < 3; i++)
    statuses.push(await app.inject({ url: '/v1/sessions', headers: { host, authorization } }));
  expect(statuses.map(({ statusCode }) => statusCode)).toEqual([200, 200, 429]);
  expect(statuses.at(-1)?.headers['retry-after']).toBe('10');
  expect(statuses.at(-1)?.json()).toMatchObject({ code: 'rate_limited' });
});

test.each([
  ['/v1/sessions', 'limit', 500],
  ['/v1/approvals', 'limit', 500],
  ['/v1/sessions/one/events', 'limit', 1_000],
])('the query of %s accepts one %s, a whole number in digits', async (url, field, max) => {
  const { app, authorization } = await appWithoutBus();
  const ask = (query: string) => app.inject({ url: `${url}?${query}`, headers: { host, authorization } });
  for (const written of ['1e2', '0x10', '%205', '+5', '05', '1.0', '', '0', '-1', `${max + 1}`, '9'.repeat(400)]) {
    const answer = await ask(`${field}=${written}`);
    expect(answer.json(), written).toMatchObject({ status: 400, code: 'invalid_field', field });
    expect(answer.json().detail, written).toContain(`must be a whole number from 1 to ${max}`);
  }
  expect((await ask(`${field}=1&${field}=2`)).json()).toMatchObject({ status: 400, code: 'invalid_field', field });
  expect((await ask(`${field}=${max}`)).json().code).not.toBe('invalid_field');
});

test('a stopping gateway rejects new requests', async () => {
  const { app, authorization, stopping } = await appWithoutBus();
  stopping.abort();
  const answer = await app.inject({ url: '/v1/sessions', headers: { host, authorization } });
  expect(answer.statusCode).toBe(503);
  expect(answer.json()).toMatchObject({ code: 'gateway_stopping' });
  expect(answer.headers['retry-after']).toBe('1');
});

test('without a bus, the gateway is alive but not ready', async () => {
  const { app } = await appWithoutBus();
  const alive = await app.inject({ url: '/healthz', headers: { host } });
  expect(alive.statusCode).toBe(200);
  expect(alive.json()).toEqual({ status: 'ok', ...FORMAT_VERSIONS });
  const ready = await app.inject({ url: '/readyz', headers: { host } });
  expect(ready.statusCode).toBe(503);
  expect(ready.json()).toMatchObject({ code: 'nats_unreachable' });
});

test('an error without a code is a 500 without details', async () => {
  const { app, authorization } = await appWithoutBus({
    clientOf: () => {
      throw new Error('secret: the colour of the safe');
    },
  });
  const answer = await app.inject({ url: '/v1/sessions', headers: { host, authorization } });
  expect(answer.statusCode).toBe(500);
  expect(answer.json()).toMatchObject({ code: 'internal' });
  expect(answer.body).not.toContain('safe');
});

test('a token that cannot be checked gets 503 instead of 401', async () => {
  const { app } = await appWithoutBus({
    authenticator: { authenticate: () => Promise.reject(new Problem('auth_unavailable', 'no keys')) },
  });
  const answer = await app.inject({ url: '/v1/sessions', headers: { host, authorization: 'Bearer x' } });
  expect(answer.statusCode).toBe(503);
});

test('a tenant whose key the gateway does not have is rejected', async () => {
  const { app, authorization } = await appWithoutBus({ clientOf: () => null });
  const answer = await app.inject({ url: '/v1/sessions', headers: { host, authorization } });
  expect(answer.statusCode).toBe(403);
  expect(answer.json()).toMatchObject({ code: 'not_permitted' });
});

test('a token in the URL is not accepted', async () => {
  const { app, authorization } = await appWithoutBus();
  const token = authorization.slice('Bearer '.length);
  for (const query of [`access_token=${token}`, `token=${token}`]) {
    const answer = await app.inject({ url: `/v1/sessions?${query}`, headers: { host } });
    expect(answer.statusCode).toBe(401);
  }
});

test('the preflight request of an allowed origin is accepted, that of another origin rejected', async () => {
  const site = 'https://app.example.com';
  const { app, authorization } = await appWithoutBus({}, { allowedOrigins: [site] });
  const asked = await app.inject({
    method: 'OPTIONS',
    url: '/v1/sessions',
    headers: { host, origin: site, 'access-control-request-method': 'POST' },
  });
  expect(asked.statusCode).toBe(204);
  expect(asked.headers).toMatchObject({ 'access-control-allow-origin': site, vary: 'origin' });
  expect(asked.headers['access-control-allow-credentials']).toBeUndefined();
  const read = await app.inject({ url: '/v1/sessions', headers: { host, origin: site, authorization } });
  expect(read.headers['access-control-allow-origin']).toBe(site);
  const other = await app.inject({
    method: 'OPTIONS',
    url: '/v1/sessions',
    headers: { host, origin: 'https://evil.example', 'access-control-request-method': 'POST' },
  });
  expect(other.statusCode).toBe(403);
  expect(other.headers['access-control-allow-origin']).toBeUndefined();
});

const upgradeOf = (path: string) =>
  `GET ${path} HTTP/1.1\r\nhost: gateway.test\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
  'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';

test.each([
  ['text that is not HTTP', 'GARBAGE\r\n\r\n', 400, 'request_unreadable'],
  ['a TLS hello', '\x16\x03\x01\x02\x00', 400, 'request_unreadable'],
  [
    'headers without end',
    `GET / HTTP/1.1\r\nhost: gateway.test\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`,
    431,
    'headers_too_large',
  ],
  [
    'an upgrade to HTTP/2',
    'GET /healthz HTTP/1.1\r\nhost: gateway.test\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n',
    400,
    'request_unreadable',
  ],
  [
    'an invalid URL',
    'GET /v1/sessions/%zz HTTP/1.1\r\nhost: gateway.test\r\nconnection: close\r\n\r\n',
    404,
    'route_not_found',
  ],
  [
    'an unknown expectation',
    'GET /healthz HTTP/1.1\r\nhost: gateway.test\r\nexpect: 200-ok\r\n\r\n',
    417,
    'expectation_failed',
  ],
  ...['host: gateway.test', 'Authorization: Bearer other', 'content-type: text/plain'].map(
    (repeated): [string, string, number, string] => [
      `a repeated header, ${repeated},`,
      `POST /v1/sessions HTTP/1.1\r\nhost: gateway.test\r\nauthorization: Bearer one\r\ncontent-type: text/plain\r\n${repeated}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`,
      400,
      'request_unreadable',
    ],
  ),
  ['a WebSocket at an invalid URL', upgradeOf('/v1/sessions/%zz/inspect'), 404, 'route_not_found'],
  ['a WebSocket of an id that is too long', upgradeOf(`/v1/sessions/${'x'.repeat(2_000)}/ws`), 400, 'invalid_id'],
])('%s is answered with a problem, and the connection is closed', async (_what, sent, status, code) => {
  const { app } = await appWithoutBus();
  const answer = await connected(app, sent);
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(answer).toMatch(/^content-type: application\/problem\+json/im);
  expect(answer).toMatch(/^x-content-type-options: nosniff\r$/m);
  expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject({ status, code });
  await app.close();
});

test('the error of an unknown field does not offer the field actor', async () => {
  const { app, authorization } = await appWithoutBus();
  const { body } = await app.inject({
    method: 'POST',
    url: '/v1/sessions/x/cancel',
    headers: { host, authorization },
    payload: { acto: 'me' },
  });
  const { detail } = JSON.parse(body) as { detail: string };
  expect(detail).toBe('unknown field "acto"; cancel takes command_id, reason');
});

test('the error of an unknown query parameter is about the query', async () => {
  const { app, authorization } = await appWithoutBus();
  const { body } = await app.inject({ url: '/v1/sessions?foo=1', headers: { host, authorization } });
  const problem = JSON.parse(body) as { detail: string; title: string };
  expect(problem).toMatchObject({ code: 'unknown_field', title: expect.stringContaining('query parameter') });
  expect(problem.detail).toBe('unknown query parameter "foo"; there are state, persona, details, limit, cursor');
});

test('a body with a repeated member is rejected, also as plain text', async () => {
  const { app, authorization } = await appWithoutBus();
  for (const type of ['application/json', 'text/plain']) {
    const answer = await app.inject({
      method: 'POST',
      url: '/v1/sessions/x/steer',
      headers: { host, authorization, 'content-type': type },
      payload: '{"body": "stop", "body": "go on"}',
    });
    expect(answer.json()).toMatchObject({
      status: 400,
      code: 'invalid_json',
      detail: expect.stringContaining('the member "body" is repeated'),
    });
  }
});

test('a client that disconnects while its session is looked up takes no slot of a watcher', async () => {
  let found: (n: number) => void = () => undefined;
  const looked = new Promise<number>((resolve) => {
    found = resolve;
  });
  let isLookedUp = false;
  const session = {
    id: 's',
    ref: { tenant: 'default', sessionId: 's' },
    lastNumber: () => {
      isLookedUp = true;
      return looked;
    },
  } as unknown as Session;
  const metrics = createMetrics();
  const feeds = new SessionFeeds(metrics);
  const join = vi.spyOn(feeds, 'join');
  const { app, authorization } = await appWithoutBus({
    feeds,
    clientOf: () => ({ session: () => session }) as unknown as GatewayClient,
  });
  const url = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const gone = new Promise((resolve) => {
    app.server.once('request', (_request, answer) => answer.once('close', resolve));
  });
  const socket = connect({ host: url.hostname, port: Number(url.port) });
  socket.write(
    `GET /v1/sessions/s/events HTTP/1.1\r\nhost: ${host}\r\nauthorization: ${authorization}\r\naccept: text/event-stream\r\n\r\n`,
  );
  await vi.waitFor(() => expect(isLookedUp).toBe(true));
  socket.destroy();
  await gone;
  found(1);
  await new Promise((resolve) => setImmediate(resolve));
  expect(join).not.toHaveBeenCalled();
  await app.close();
});

test('without a bus, a read fails with nats_unreachable instead of no_host', async () => {
  const session = {
    ref: { tenant: 'default', sessionId: 's' },
    wire: { stateAfter: () => Promise.reject(new NoHostError()) },
  };
  const client = { session: () => session } as unknown as GatewayClient;
  const answered = async (ping: () => Promise<void>) => {
    const { app, authorization } = await appWithoutBus({ clientOf: () => client, ping });
    return (await app.inject({ url: '/v1/sessions/s/pending', headers: { host, authorization } })).json();
  };
  expect(await answered(() => Promise.reject(new Error('disconnected')))).toMatchObject({
    status: 503,
    code: 'nats_unreachable',
  });
});

test('the state of a session is read with the client’s retries while its host has too many queries', async () => {
  const full = Object.assign(new Error('too many queries are being answered'), { code: 'too_many_queries' });
  const session = {
    ref: { tenant: 'default', sessionId: 's' },
    wire: { state: () => Promise.reject(full), stateAfter: async () => ({ pending: [] }) },
  };
  const { app, authorization } = await appWithoutBus({
    clientOf: () => ({ session: () => session }) as unknown as GatewayClient,
  });
  const answer = await app.inject({ url: '/v1/sessions/s/pending', headers: { host, authorization } });
  expect(answer.json()).toEqual({ pending: [] });
});

test.each(['/v1/sessions', '/healthz', '/v1/whoami', '/openapi.json'])(
  'a method that a route does not support gets 405 and is not logged as an error: %s',
  async (url) => {
    const error = vi.fn();
    const { app } = await appWithoutBus({ log: { ...SILENT, error } });
    for (const method of ['QUERY', 'TRACE', 'PROPFIND', 'PATCH'])
      for (const headers of [{}, { 'content-type': 'no type' }, { 'content-type': 'application/json' }]) {
        const answer = await app.inject({
          method: method as 'PATCH',
          url,
          headers: { host, ...headers },
          ...(method === 'TRACE' ? {} : { payload: '{' }),
        });
        expect(answer.json(), `${method} ${JSON.stringify(headers)}`).toMatchObject({
          status: 405,
          code: 'method_not_allowed',
        });
        expect(answer.headers.allow).toBeDefined();
      }
    expect(error).not.toHaveBeenCalled();
  },
);

test('an error of Fastify with status 400 is reported to the client, one with status 500 is internal', () => {
  const thrown = (code: string, statusCode: number) => Object.assign(new Error('why'), { code, statusCode });
  expect(problemFrom(thrown('FST_ERR_ROUTE_MISSING_CONTENT_TYPE', 400)).document).toMatchObject({
    status: 400,
    code: 'request_unreadable',
    detail: expect.stringContaining('why'),
  });
  expect(problemFrom(thrown('FST_ERR_REP_INVALID_PAYLOAD_TYPE', 500)).code).toBe('internal');
});

const posted = async (payload: string, type: string, more: Record<string, string> = {}) => {
  const sent = vi.fn(() => Promise.reject(new Error('it was sent')));
  const session = {
    id: 's',
    ref: { tenant: 'default', sessionId: 's' },
    lastNumber: async () => 1,
    wire: { send: sent },
  };
  const { app, authorization } = await appWithoutBus({
    clientOf: () => ({ session: () => session }) as unknown as GatewayClient,
  });
  const answer = await app.inject({
    method: 'POST',
    url: '/v1/sessions/s/followup',
    headers: { host, authorization, 'content-type': type, ...more },
    payload,
  });
  return { ...answer.json(), wasSent: sent.mock.calls.length > 0 };
};

test.each([
  ['application/json', {}],
  ['text/plain', {}],
  ['application/json', { 'idempotency-key': 'k' }],
])('a number out of range is rejected with its field (%s, %j)', async (type, more) => {
  for (const number of ['1e999', '-1e999', '9'.repeat(400)])
    expect(await posted(`{"body":"x","a":[0,{"b":${number}}]}`, type, more)).toMatchObject({
      status: 400,
      code: 'invalid_field',
      field: 'a.1.b',
      wasSent: false,
    });
  expect(await posted('{"body":"x","dedupe_key":"1e999"}', type, more)).toMatchObject({ wasSent: true });
});

test.each([
  ['/v1/agui', 'content-length: 1000'],
  ['/v1/agui', 'transfer-encoding: chunked'],
  ['/v1/sessions/s/steer', 'content-length: 1000'],
])('beyond the memory for bodies, a request to %s is rejected before its body is read (%s)', async (url, length) => {
  const { app, authorization } = await appWithoutBus({
    bodies: new MemoryShares(4 * (1_000 + GATEWAY_BOUNDS.requestBytes)),
  });
  const { hostname, port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const socket = connect({ host: hostname, port: Number(port) });
  const head = `host: gateway.test\r\nauthorization: ${authorization}\r\ncontent-type: application/json`;
  const post = () =>
    app.inject({ method: 'POST', url: '/v1/sessions', headers: { host, authorization }, payload: { at: 1 } });
  expect((await post()).json()).toMatchObject({ code: 'unknown_field' });
  // The rest of this body does not arrive.
  socket.write(`POST ${url} HTTP/1.1\r\n${head}\r\n${length}\r\n\r\n`);
  await expect.poll(async () => (await post()).statusCode, { timeout: 20_000 }).toBe(503);
  const refused = await post();
  expect([refused.json().code, refused.headers['retry-after']]).toEqual(['gateway_busy', '1']);
  // Reads need no memory.
  expect((await app.inject({ url: '/v1/whoami', headers: { host, authorization } })).statusCode).toBe(200);
  socket.destroy();
  await expect.poll(async () => (await post()).statusCode, { timeout: 20_000 }).toBe(400);
  await app.close();
});

test('a stream of AG-UI occupies no memory for the body of its request', async () => {
  const session = {
    ...{ id: 's', ref: { tenant: 'default', sessionId: 's' }, lastNumber: async () => 1, records: silence },
    async *journal() {
      await new Promise(() => undefined);
    },
  };
  const { app, authorization, stopping } = await appWithoutBus({
    bodies: new MemoryShares(400),
    clientOf: () => ({ session: () => session as unknown as Session }) as unknown as GatewayClient,
  });
  const payload = { threadId: 's', runId: 'r', messages: [], forwardedProps: { note: 'x'.repeat(100) } };
  const headers = { host, authorization };
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const sent = request(`${url}/v1/agui`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
  });
  const responded = once(sent, 'response');
  sent.end(JSON.stringify(payload));
  const [response] = (await responded) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  expect((await app.inject({ method: 'POST', url: '/v1/sessions', headers, payload })).statusCode).toBe(400);
  sent.destroy();
  stopping.abort();
  await app.close();
});

test('memory for bodies is released once, and shared by the principals', () => {
  const memory = new MemoryShares(4_000);
  const take = (name: string) => memory.take(1_000, { name, tenant: 'default', scopes: new Set(), expiresAt: null });
  const share = take('alice');
  expect(take('alice')).toBeNull();
  expect(take('bob')).not.toBeNull();
  share?.release();
  share?.release();
  share?.shrink(1_000);
  expect(take('alice')).not.toBeNull();
  expect(take('bob')).toBeNull();
});

test('a tenant with many tokens leaves half of the memory for bodies to others', () => {
  const memory = new MemoryShares(4_000);
  const take = (tenant: string, name: string) => memory.take(500, { name, tenant, scopes: new Set(), expiresAt: null });
  const shares = ['a', 'b', 'c', 'd'].map((name) => take('red', name));
  expect(shares).not.toContain(null);
  expect(take('red', 'e')).toBeNull();
  expect(take('blue', 'e')).not.toBeNull();
  shares[0]?.shrink(100);
  expect(take('red', 'e')).not.toBeNull();
});

test('a body in another charset than UTF-8 is rejected', async () => {
  for (const charset of ['utf-16', '"UTF-16LE"', 'latin1', ''])
    for (const type of ['application/json', 'text/plain'])
      expect(await posted('{"body":"x"}', `${type}; charset=${charset}`), charset).toMatchObject({
        status: 415,
        code: 'unsupported_media_type',
        field: 'content-type',
        wasSent: false,
      });
  for (const charset of ['utf-8', 'UTF-8', '"utf-8"', 'utf8'])
    expect(await posted('{"body":"x"}', `application/json; charset=${charset}`), charset).toMatchObject({
      wasSent: true,
    });
});

describe('the span of a request', () => {
  const traced = async () => {
    const spans: EndedSpan[] = [];
    const sink = { capturesContent: false, keeps: () => true, masked: (text: string) => text };
    const made = await appWithoutBus(
      { spans: { ...sink, take: (span) => void spans.push(span) } },
      { ownOrigins: [`http://${host}:7707`, `http://${host}`] },
    );
    return { ...made, spans };
  };

  test('has the HTTP attributes of OpenTelemetry, without the query', async () => {
    const { app, authorization, spans } = await traced();
    const headers = { host: `${host}:7707`, authorization, 'user-agent': 'curl/8' };
    await app.inject({ url: '/v1/sessions/one/events?limit=0', headers });
    // A span is made when the answer is on its way.
    await expect.poll(() => spans).toHaveLength(1);
    expect(spans).toMatchObject([
      {
        name: 'GET /v1/sessions/:session_id/events',
        error: null,
        attributes: {
          'http.request.method': 'GET',
          'http.route': '/v1/sessions/:session_id/events',
          'http.response.status_code': 400,
          'url.path': '/v1/sessions/one/events',
          'url.scheme': 'http',
          'server.address': host,
          'server.port': 7707,
          'client.address': '127.0.0.1',
          'network.protocol.version': '1.1',
          'user_agent.original': 'curl/8',
          'coxswain.code': 'invalid_field',
        },
      },
    ]);
    expect(JSON.stringify(spans)).not.toContain('limit=0');
  });

  test('has the error of a request that failed', async () => {
    const { app, authorization, spans } = await traced();
    const payload = { prompt: 'Go.', model: 'scripted//x.yaml' };
    const { statusCode } = await app.inject({
      method: 'POST',
      url: '/v1/sessions',
      headers: { host, authorization },
      payload,
    });
    await expect.poll(() => spans).toHaveLength(1);
    expect([statusCode, spans[0]?.error]).toEqual([
      500,
      { type: 'internal', message: expect.stringContaining('internal error') },
    ]);
  });
});

test.each([
  ['reconnects', 'a journal that was restored without it', 20, 3, 'last-event-id: record 7 does not exist'],
  ['reconnects', 'a feed that lags', 20, 9, null],
  ['reconnects', 'a feed that lags for a moment', 600_000, 3, null],
  ['asks for later records', 'a journal that was restored without it', 20, 3, 'from: record 8 does not exist'],
  ['asks for later records', 'a journal that has the record', 20, 7, null],
])('a client that %s after record 7 is served from %s', async (does, _what, replicaLagMs, lastNumber, problem) => {
  let live: () => void = () => undefined;
  const isLive = new Promise<void>((resolve) => {
    live = resolve;
  });
  const session = {
    ...{ id: 's', ref: { tenant: 'default', sessionId: 's' } },
    lastNumber: async () => {
      // Was read after the time for a lag.
      live();
      return lastNumber;
    },
    async *records({ signal }: { readonly signal: AbortSignal }) {
      yield { record: { n: 3, input: { type: 'timer' } } };
      if (replicaLagMs > 1_000) live();
      await isLive;
      for (let n = 4; n <= 8 && problem === null; n++) yield { record: { n, input: { type: 'timer' } } };
      if (!signal.aborted) await once(signal, 'abort');
    },
  };
  const { app, authorization, stopping } = await appWithoutBus({
    clientOf: () => ({ session: () => session as unknown as Session }) as unknown as GatewayClient,
    known: { expect: async () => undefined } as unknown as KnownSessions,
    times: { replicaLagMs },
  });
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const isBack = does === 'reconnects';
  const headers = { host, authorization, accept: 'text/event-stream', ...(isBack ? { 'last-event-id': '7' } : {}) };
  const path = `/v1/sessions/s/events${isBack ? '' : '?from=8'}`;
  const [answer] = (await once(request({ host: '127.0.0.1', port, path, headers }).end(), 'response')) as [
    IncomingMessage,
  ];
  let text = '';
  for await (const piece of answer.setEncoding('utf8')) {
    text += piece;
    if (text.includes(problem === null ? 'id: 8' : 'event: problem')) break;
  }
  expect(text).not.toMatch(/^id: [1-7]$/m);
  if (problem === null) expect(text).not.toContain('problem');
  else
    for (const part of ['"code":"record_not_there"', problem, 'the newest record is 3']) expect(text).toContain(part);
  stopping.abort();
  await app.close();
});
