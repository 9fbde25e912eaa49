/** What WebSockets have of their own: where their token stands, and how many inspect. */
import { describe, expect, test } from 'vitest';
import { bearerOf } from '../src/auth/bearer.ts';
import type { ConsoleFile } from '../src/console/console-files.ts';
import type { App } from '../src/create-app.ts';
import { InspectorSeats } from '../src/socket/inspector-seats.ts';
import { InspectQuery } from '../src/socket/serve-inspector.ts';
import { appOnNothing, connected } from './app-on-nothing.ts';

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
const socket = { upgrade: 'websocket' };

describe('the token of a WebSocket', () => {
  test('is the password of an address, whatever the name there is', () => {
    expect(bearerOf({ ...socket, authorization: basic('inspect:cox_abc') })).toBe('cox_abc');
    expect(bearerOf({ ...socket, authorization: basic(':cox_abc') })).toBe('cox_abc');
    expect(bearerOf({ ...socket, authorization: basic('a:cox:abc') })).toBe('cox:abc');
  });
  test.each([
    ['no password', basic('cox_abc')],
    ['an empty one', basic('inspect:')],
    ['one with a space', basic('inspect:cox abc')],
    ['no base64', 'Basic {}'],
    ['one that is too long', basic(`inspect:${'x'.repeat(9_000)}`)],
  ])('is none where there is %s', (_what, authorization) => expect(bearerOf({ ...socket, authorization })).toBeNull());
  test('is no password of any other request: a browser would send that by itself', () => {
    expect(bearerOf({ authorization: basic('inspect:cox_abc') })).toBeNull();
    expect(bearerOf({ upgrade: 'h2c', authorization: basic('inspect:cox_abc') })).toBeNull();
  });
});

describe('a WebSocket is opened where there is one', () => {
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
    ['what is open to all', 'GET /healthz', 400, 'request_unreadable'],
    ['the document', 'GET /openapi.json', 400, 'request_unreadable'],
    ['the page', 'GET /', 400, 'request_unreadable'],
    ['the address of a socket by another method', 'POST /v1/sessions/s1/ws', 405, 'method_not_allowed'],
    ['what is not there', 'GET /v1/nothing', 404, 'route_not_found'],
  ])('and not at %s', async (_what, line, status, code) => {
    const page: ConsoleFile = {
      path: '/',
      type: 'text/html',
      bytes: Buffer.from('<p>'),
      gzipped: null,
      immutable: false,
    };
    const { app, authorization } = await appOnNothing({}, {}, [page]);
    try {
      const answer = await asked(app, line, [`authorization: ${authorization}`]);
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect(answer).toContain(`"code":"${code}"`);
    } finally {
      await app.close();
    }
  });
  test('whoever has no token is told that first', async () => {
    const { app } = await appOnNothing();
    try {
      expect(await asked(app, 'GET /v1/sessions')).toMatch(/^HTTP\/1.1 401 /);
    } finally {
      await app.close();
    }
  });
});

describe('where an inspection begins', () => {
  test.each(['0', '0x5', '1e2', ' 5', '1.5', '', 'last'])('is not at %j, as of every other feed', (from) =>
    expect(InspectQuery.safeParse({ from }).error?.issues).toMatchObject([
      { path: ['from'], message: 'must be the number of a record (1 or more), or newest' },
    ]),
  );
  test('is at the first record, at one by its number, or at the newest', () => {
    const fromOf = (query: object) => InspectQuery.parse(query).from;
    expect([fromOf({}), fromOf({ from: '7' }), fromOf({ from: 'newest' })]).toEqual([1, 7, 'newest']);
  });
});

describe('seats of inspectors', () => {
  const ada = { tenant: 'red', name: 'ada' };
  const bob = { tenant: 'red', name: 'bob' };

  test('so many for one token, and so many for all', () => {
    const seats = new InspectorSeats(3, 2);
    seats.acquire(ada);
    const leave = seats.acquire(ada);
    expect(() => seats.acquire(ada)).toThrow(/2 connections already inspect sessions with this token/);
    seats.acquire(bob);
    expect(() => seats.acquire({ tenant: 'blue', name: 'ada' })).toThrow(/3 connections already inspect sessions/);
    leave();
    seats.acquire(ada);
  });
  test('of one name in two tenants are two', () => {
    const seats = new InspectorSeats(9, 1);
    seats.acquire(ada);
    expect(seats.acquire({ tenant: 'blue', name: 'ada' })).toBeTypeOf('function');
  });
});
