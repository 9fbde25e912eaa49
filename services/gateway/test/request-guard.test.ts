/** The Host and Origin checks of requests, and the origins of a gateway on loopback. */
import { describe, expect, test } from 'vitest';
import { isLoopback, loopbackOrigins } from '../src/http/mod.ts';
import { appWithoutBus, connected } from './app-without-bus.ts';

const ORIGINS = {
  ownOrigins: ['https://gw.example.com', ...loopbackOrigins({ address: '127.0.0.1', port: 7707 })],
  allowedOrigins: ['https://app.example.com'],
};
const { app, authorization } = await appWithoutBus({}, ORIGINS);

async function answered(more: Record<string, string>) {
  const headers = { host: 'gw.example.com', authorization, ...more };
  const answer = await app.inject({ url: '/v1/sessions', headers });
  return { code: answer.json().code as string | undefined, allowed: answer.headers['access-control-allow-origin'] };
}

describe('the Host header', () => {
  test.each([
    'gw.example.com',
    'gw.example.com:443',
    'GW.example.com',
    '127.0.0.1:7707',
    'localhost:7707',
    '[::1]:7707',
  ])('may be %s', async (host) => {
    expect((await answered({ host })).code).toBeUndefined();
  });

  test.each([
    'evil.example',
    '127.0.0.1',
    '127.0.0.1:7708',
    'localhost',
    'gw.example.com.evil.example',
    'gw.example.com@evil',
    '',
  ])('%j is rejected', async (host) => {
    expect((await answered({ host })).code).toBe('host_not_allowed');
  });

  test('is required', async () => {
    const own = await appWithoutBus({}, ORIGINS);
    expect(await connected(own.app, 'GET /v1/sessions HTTP/1.0\r\n\r\n')).toContain('"code":"host_not_allowed"');
    await own.app.close();
  });
});

describe('the Origin header', () => {
  test('of a program is absent', async () => {
    expect(await answered({})).toEqual({ code: undefined, allowed: undefined });
  });

  test('of an allowed site is repeated in the answer, of the gateway itself is not', async () => {
    const own = { origin: 'https://gw.example.com', 'sec-fetch-site': 'same-origin' };
    expect(await answered(own)).toEqual({ code: undefined, allowed: undefined });
    const site = 'https://app.example.com';
    expect(await answered({ origin: site, 'sec-fetch-site': 'cross-site' })).toEqual({
      code: undefined,
      allowed: site,
    });
  });

  test.each(['https://evil.example', 'null', 'http://gw.example.com', 'https://app.example.com:8443', ''])(
    '%j is rejected',
    async (origin) => {
      expect((await answered({ origin })).code).toBe('origin_not_allowed');
    },
  );

  test('may be absent in a read by a page, which Sec-Fetch-Site then rejects', async () => {
    const codeOf = async (site: string) => (await answered({ 'sec-fetch-site': site })).code;
    expect(await codeOf('cross-site')).toBe('origin_not_allowed');
    expect(await codeOf('same-site')).toBe('origin_not_allowed');
    expect(await codeOf('none')).toBeUndefined();
  });
});

test.each([
  ['127.0.0.1', true],
  ['127.9.0.1', true],
  ['::1', true],
  ['localhost', true],
  ['0.0.0.0', false],
  ['::', false],
  ['127.0.0.1.example', false],
])('%s is loopback: %s', (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});

describe('the origins of a gateway on loopback', () => {
  test.each([
    ['127.0.0.1', 'http://127.0.0.1:7707'],
    ['127.0.0.2', 'http://127.0.0.2:7707'],
    ['::1', 'http://[::1]:7707'],
  ])('of %s begin with %s', (address, url) => {
    const origins = loopbackOrigins({ address, port: 7707 });
    expect(origins[0]).toBe(url);
    expect(new Set(origins).size).toBe(origins.length);
    expect(origins).toEqual(
      expect.arrayContaining(['http://127.0.0.1:7707', 'http://localhost:7707', 'http://[::1]:7707']),
    );
  });
});
