/** What WebSockets have of their own: where their token stands, and how many inspect. */
import { describe, expect, test } from 'vitest';
import { bearerOf } from '../src/auth/bearer.ts';
import { InspectorSeats } from '../src/socket/inspector-seats.ts';
import { InspectQuery } from '../src/socket/serve-inspector.ts';

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

describe('where an inspection begins', () => {
  test.each(['0', '0x5', '1e2', ' 5', '1.5', '', 'last'])('is not at %j, as of every other feed', (from) =>
    expect(InspectQuery.safeParse({ from }).error?.issues).toMatchObject([
      { path: ['from'], message: 'must be a record’s number, from 1 on, or newest' },
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
    seats.take(ada);
    const leave = seats.take(ada);
    expect(() => seats.take(ada)).toThrow(/2 connections inspect sessions with this token/);
    seats.take(bob);
    expect(() => seats.take({ tenant: 'blue', name: 'ada' })).toThrow(/3 connections inspect sessions already/);
    leave();
    seats.take(ada);
  });
  test('of one name in two tenants are two', () => {
    const seats = new InspectorSeats(9, 1);
    seats.take(ada);
    expect(seats.take({ tenant: 'blue', name: 'ada' })).toBeTypeOf('function');
  });
});
