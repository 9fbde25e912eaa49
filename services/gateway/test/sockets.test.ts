/** What WebSockets have of their own: where their token stands, and how many inspect. */
import { describe, expect, test } from 'vitest';
import { bearerOf } from '../src/auth/bearer.ts';
import { InspectorSeats } from '../src/socket/inspector-seats.ts';

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
