import { describe, expect, test } from 'vitest';
import { connectionUrl, parseConnectionUrl } from '../src/connection-url.ts';

describe('an address with credentials', () => {
  test('is made for bare clients, and taken apart for others', () => {
    const url = connectionUrl({ url: 'nats://127.0.0.1:4222', token: 'a_token-of-16-bytes' });
    expect(url).toBe('nats://a_token-of-16-bytes@127.0.0.1:4222');
    expect(parseConnectionUrl(url)).toEqual({ servers: ['nats://127.0.0.1:4222'], token: 'a_token-of-16-bytes' });
    expect(parseConnectionUrl('tls://ann:p%40ss@a:1, b:2')).toEqual({
      servers: ['tls://a:1', 'nats://b:2'],
      user: 'ann',
      password: 'p@ss',
    });
    expect(parseConnectionUrl('demo.example')).toEqual({ servers: ['nats://demo.example'] });
  });

  test.each(['', ' , ', 'http://a', 'nats://a b', 'nats://x@a,nats://y@b'])('"%s" is refused', (text) => {
    expect(() => parseConnectionUrl(text)).toThrow(expect.objectContaining({ code: 'nats_url_invalid' }));
  });
});
