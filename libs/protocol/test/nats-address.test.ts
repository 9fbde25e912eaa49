import { describe, expect, test } from 'vitest';
import { readNatsAddress } from '../src/wire/nats-address.ts';

describe('an address of a NATS server', () => {
  test.each([
    ['nats://h', 'h:4222'],
    ['h:1', 'h:1'],
    ['nats://h:/', 'h:4222'],
    ['NATS://h:80/', 'h:80'],
    ['h:080', 'h:80'],
    ['nats://[::1]:5', '[::1]:5'],
    ['nats://a%25:b@h', 'h:4222'],
  ])('%s is accepted', (text, server) => {
    expect(readNatsAddress(text)).toMatchObject({ ok: true, address: { server } });
  });

  test.each([
    ['', 'cannot be read'],
    ['nats://', 'cannot be read'],
    ['nats:///h', 'cannot be read'],
    ['nats://a b', 'cannot be read'],
    ['nats://h:99999', 'cannot be read'],
    ['nats://h:-1', 'cannot be read'],
    ['nats://999.1.1.1', 'cannot be read'],
    ['nats://h:0', 'the port 0'],
    ['nats://h/path', 'a path'],
    ['nats://h?x=1', 'a path'],
    ['wss://h', 'the scheme wss'],
    ['nats://s3cret%@h', 'percent-encoded'],
  ])('"%s" is rejected: %s', (text, why) => {
    expect(readNatsAddress(text)).toEqual({ ok: false, problem: expect.stringContaining(why) });
    expect(readNatsAddress(text)).not.toMatchObject({ problem: expect.stringContaining('s3cret') });
  });
});
