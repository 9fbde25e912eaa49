import { describe, expect, test } from 'vitest';
import type { Problem } from '../src/problem.ts';
import { createGuard, isLoopback, loopbackOrigins } from '../src/request-guard.ts';

const guard = createGuard(() => ({
  ownOrigins: ['https://gw.example.com', ...loopbackOrigins({ address: '127.0.0.1', port: 7707 })],
  allowedOrigins: ['https://app.example.com'],
}));

function codeOf(check: () => unknown): string {
  try {
    check();
    return 'taken';
  } catch (error) {
    return (error as Problem).code;
  }
}

describe('the host that a request names', () => {
  test.each([
    'gw.example.com',
    'gw.example.com:443',
    'GW.example.com',
    '127.0.0.1:7707',
    'localhost:7707',
    '[::1]:7707',
  ])('%s is the gateway', (host) => {
    expect(codeOf(() => guard.checkHost({ host }))).toBe('taken');
  });

  test.each([
    'evil.example',
    '127.0.0.1',
    '127.0.0.1:7708',
    'localhost',
    'gw.example.com.evil.example',
    'gw.example.com@evil',
    '',
  ])('%j is not', (host) => {
    expect(codeOf(() => guard.checkHost({ host }))).toBe('host_not_allowed');
  });

  test('none at all is not', () => {
    expect(codeOf(() => guard.checkHost({}))).toBe('host_not_allowed');
  });
});

describe('the site that a request comes from', () => {
  test('programs say none', () => {
    expect(guard.checkOrigin({})).toBeNull();
  });

  test('the gateway’s own pages need no leave; another site’s is named in the answer', () => {
    expect(guard.checkOrigin({ origin: 'https://gw.example.com', 'sec-fetch-site': 'same-origin' })).toBeNull();
    expect(guard.checkOrigin({ origin: 'https://app.example.com', 'sec-fetch-site': 'cross-site' })).toBe(
      'https://app.example.com',
    );
  });

  test.each(['https://evil.example', 'null', 'http://gw.example.com', 'https://app.example.com:8443', ''])(
    '%j is refused',
    (origin) => {
      expect(codeOf(() => guard.checkOrigin({ origin }))).toBe('origin_not_allowed');
    },
  );

  test('a read of a page elsewhere, which names no origin, is refused by what its browser says', () => {
    expect(codeOf(() => guard.checkOrigin({ 'sec-fetch-site': 'cross-site' }))).toBe('origin_not_allowed');
    expect(codeOf(() => guard.checkOrigin({ 'sec-fetch-site': 'same-site' }))).toBe('origin_not_allowed');
    expect(guard.checkOrigin({ 'sec-fetch-site': 'none' })).toBeNull();
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

describe('what a gateway on loopback is called', () => {
  test.each([
    ['127.0.0.1', 'http://127.0.0.1:7707'],
    ['127.0.0.2', 'http://127.0.0.2:7707'],
    ['::1', 'http://[::1]:7707'],
  ])('at %s is first of all %s, where it is found', (address, url) => {
    const origins = loopbackOrigins({ address, port: 7707 });
    expect(origins[0]).toBe(url);
    expect(new Set(origins).size).toBe(origins.length);
    expect(origins).toEqual(
      expect.arrayContaining(['http://127.0.0.1:7707', 'http://localhost:7707', 'http://[::1]:7707']),
    );
  });
});
