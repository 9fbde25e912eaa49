/** What `cox doctor` says that one can do. */
import { ERROR_CATALOGUE } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { remedyOf } from '../src/instance/checks.ts';

test('whatever goes wrong, it does not send people to itself', () => {
  const codes = Object.keys(ERROR_CATALOGUE);
  expect(
    codes.some((code) => ERROR_CATALOGUE[code as keyof typeof ERROR_CATALOGUE].caller.includes('cox doctor')),
  ).toBe(true);
  for (const code of codes) {
    expect(remedyOf(code), code).not.toContain('cox doctor');
    expect(remedyOf(code), code).toMatch(/^\S.*\S$/);
  }
  expect(remedyOf('nats_unreachable')).toEqual(
    expect.stringMatching(/^Check the address, the token and the servers\. Retry after a restart of a server/),
  );
});
