import { expect, test } from 'vitest';
import { failureOf, ReportedError } from '../src/stream/stream-failure.ts';
import type { Wire } from '../src/stream/wire.ts';

const wire = {
  timedOut: null,
  networkError: null,
  isWebPage: false,
  tooLargeBytes: null,
  response: null,
} as unknown as Wire;

test.each([
  ['lines', 'one \r\n\n\t two\u2028three ', 'one two three'],
  // Quadratic work over this message would take minutes.
  ['space without end', `one${' '.repeat(400_000)}`, 'one'],
])('a provider’s message is told in one line: %s', (_what, message, told) => {
  expect(failureOf(new ReportedError({ message }), wire, 'acme', null).message).toContain(told);
  expect(failureOf(new Error(message), wire, 'acme', null).message).toBe(`the request to acme is invalid: ${told}`);
});

test('a key is not in a message, wherever that is cut', () => {
  const key = 'sk-secret-0123456789';
  for (const chars of [1_950, 1_970, 1_990, 2_010]) {
    const { message } = failureOf(new Error(`${'x'.repeat(chars)}${key}`), wire, 'acme', key);
    expect(message).not.toContain('sk-');
  }
});
