import { expect, test } from 'vitest';
import { whyUnreachable } from '../src/instance/why-unreachable.ts';

const tried = { source: '--nats', servers: 'bus:4222' };

test.each([
  ['getaddrinfo ENOTFOUND bus.invalid', 'there is no machine named bus.invalid; check the name in --nats'],
  ['getaddrinfo EAI_AGAIN bus.invalid', 'nobody could be asked which machine bus.invalid is; check'],
  ['connection refused', 'nothing listens at bus:4222 (connection refused); start a NATS server there, or check'],
  ["'Authorization Violation'", 'the server at bus:4222 does not let this user in; check the credentials'],
  ['self-signed certificate', 'no encrypted connection to bus:4222 came about; see whether'],
  ['connect ETIMEDOUT 10.0.0.1:4222', 'bus:4222 has not answered in time; check the address in --nats'],
  ['unexpected response from server', 'what listens at bus:4222 is no NATS server; check the address and the port'],
  ['connect EHOSTUNREACH 10.0.0.1:4222', 'no way leads to bus:4222; check the address in --nats'],
])('%s is told in words, with what to do', (message, words) => {
  expect(whyUnreachable(new Error(message), tried)).toContain(words);
  // Errors of the system have the code beside the message.
  const coded = Object.assign(new Error(message), { code: /\bE[A-Z_]+\b/.exec(message)?.[0] });
  expect(whyUnreachable(coded, tried)).toContain(words);
  // The library wraps what the system says.
  expect(whyUnreachable(new Error('outer', { cause: new Error(message) }), tried)).toContain(words);
});

test('what is not known is quoted', () => {
  expect(whyUnreachable(new Error('the moon is full'), tried)).toBe('the moon is full; cox doctor tells more');
});

test('no credentials of the address are shown', () => {
  const servers = 'nats://me:my,sec@ret@bus:4222';
  const said = whyUnreachable(new Error('connection refused'), { source: 'NATS_URL', servers });
  expect(said).toContain('nothing listens at bus:4222');
  expect(said).not.toMatch(/sec|ret@|me:/);
});
