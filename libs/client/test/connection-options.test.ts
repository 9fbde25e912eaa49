import { describe, expect, test } from 'vitest';
import { InvalidOptionError } from '../src/client-errors.ts';
import { connect } from '../src/connect.ts';
import { natsOptions } from '../src/connection-options.ts';

describe('a NATS address', () => {
  test.each([
    ['nats://127.0.0.1:4222', { servers: ['127.0.0.1:4222'] }],
    ['localhost', { servers: ['localhost:4222'] }],
    ['nats://t0ken@127.0.0.1:5333', { servers: ['127.0.0.1:5333'], token: 't0ken' }],
    ['nats://ann:p%40ss@nats.example:80', { servers: ['nats.example:80'], user: 'ann', pass: 'p@ss' }],
    ['nats://a:4222,nats://b:4223', { servers: ['a:4222', 'b:4223'] }],
    ['nats://[::1]:4222', { servers: ['[::1]:4222'] }],
    ['tls://nats.example', { servers: ['nats.example:4222'], tls: {} }],
  ])('%s is understood', (servers, expected) => {
    expect(natsOptions({ servers })).toMatchObject(expected);
  });

  test('a token of its own goes before the one in the address', () => {
    expect(natsOptions({ servers: 'nats://old@h', token: 'new' })).toMatchObject({ token: 'new' });
  });

  test.each(['http://host', 'nats://', 'nats://s3cret@host:notaport'])(
    '%s is refused without being quoted',
    (servers) => {
      expect(() => natsOptions({ servers })).toThrow(InvalidOptionError);
      expect(() => natsOptions({ servers })).not.toThrow(/s3cret/);
    },
  );
});

test.each([{}, null, undefined, { server: 'nats://a:4222' }])(
  '%j leads nowhere, and it is said what would',
  async (options) => {
    await expect(connect(options as never)).rejects.toThrow(/\{ servers \}.*\{ gateway, token \}/);
  },
);
