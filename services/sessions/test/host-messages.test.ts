/** What passes between a service of several session hosts and its hosts. */
import { expect, test } from 'vitest';
import { ofSentError, toSentError } from '../src/hosts/host-messages.ts';

test('an error of a host keeps its name, code and causes in the process of the service', () => {
  const cause = Object.assign(new Error('Permissions Violation'), { name: 'PermissionViolationError' });
  const error = Object.assign(new Error('the policy is invalid', { cause }), {
    name: 'PolicyFileError',
    code: 'invalid_field',
    field: 'roots',
    detail: { line: 3, close: () => undefined },
  });
  const received = ofSentError(structuredClone(toSentError(error)));
  expect(received).toBeInstanceOf(Error);
  expect(received).toMatchObject({
    name: 'PolicyFileError',
    message: 'the policy is invalid',
    code: 'invalid_field',
    field: 'roots',
    detail: { line: 3 },
    stack: error.stack,
    cause: { name: 'PermissionViolationError', message: 'Permissions Violation' },
  });
});

test('what is thrown may be no error', () => {
  expect(ofSentError(toSentError('out of paper')).message).toBe('out of paper');
});
