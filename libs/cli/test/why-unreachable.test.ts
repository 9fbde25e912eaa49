import { expect, test } from 'vitest';
import { whyUnreachable } from '../src/connection/mod.ts';

const tried = { source: '--nats', servers: 'bus:4222' };

test.each([
  ['getaddrinfo ENOTFOUND bus.invalid', 'host not found: bus.invalid (ENOTFOUND); check the name in --nats'],
  ['getaddrinfo EAI_AGAIN bus.invalid', 'temporary failure in name resolution of bus.invalid (EAI_AGAIN); check'],
  ['connection refused', 'connection refused by bus:4222 (ECONNREFUSED); start a NATS server there, check'],
  ["'Authorization Violation'", 'authentication failed at bus:4222 (authorization violation); check the credentials'],
  ['self-signed certificate', 'TLS handshake with bus:4222 failed; check that'],
  ['Client network socket: CERT_HAS_EXPIRED', 'TLS handshake with bus:4222 failed (CERT_HAS_EXPIRED); check that'],
  ['connect ETIMEDOUT 10.0.0.1:4222', 'connection to bus:4222 timed out (ETIMEDOUT); check the address in --nats'],
  ['unexpected response from server', 'the server at bus:4222 is not a NATS server; check the address and the port'],
  ['connect EHOSTUNREACH 10.0.0.1:4222', 'no route to host bus:4222 (EHOSTUNREACH); check the address in --nats'],
])('%s is explained, with a remedy', (message, words) => {
  expect(whyUnreachable(new Error(message), tried)).toContain(words);
  // Errors of the system have the code beside the message.
  const coded = Object.assign(new Error(message), { code: /\b(?:E|CERT_)[A-Z_]+\b/.exec(message)?.[0] });
  expect(whyUnreachable(coded, tried)).toContain(words);
  // The library wraps what the system says.
  expect(whyUnreachable(new Error('outer', { cause: new Error(message) }), tried)).toContain(words);
});

test('an unknown error is quoted', () => {
  expect(whyUnreachable(new Error('the moon is full'), tried)).toBe('the moon is full; run cox doctor for more');
});

test('no credentials of the address are shown', () => {
  const servers = 'nats://me:my,sec@ret@bus:4222';
  const said = whyUnreachable(new Error('connection refused'), { source: 'NATS_URL', servers });
  expect(said).toContain('connection refused by bus:4222');
  // cox up would use the same address.
  expect(said).toContain('or unset NATS_URL to use a server on this machine');
  expect(said).not.toMatch(/sec|ret@|me:/);
});
