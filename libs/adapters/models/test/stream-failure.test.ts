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
  expect(failureOf(new ReportedError({ message }), wire, 'acme').message).toContain(told);
  expect(failureOf(new Error(message), wire, 'acme').message).toBe(`the request to acme is invalid: ${told}`);
});
