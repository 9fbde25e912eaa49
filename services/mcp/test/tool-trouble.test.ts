/** What a tool's client reads of an error. */
import { CoxswainError } from '@coxswain/client';
import { errors } from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import { troubleOf } from '../src/tool-trouble.ts';

test('a permission violation is one, however many errors wrap it', () => {
  let error: Error = new errors.PermissionViolationError('no', 'publish', 'cox.red.session.k3f9.start');
  for (let depth = 0; depth < 4; depth++) {
    expect(troubleOf(error), `${depth} errors`).toMatchObject({ code: 'not_permitted' });
    error = new CoxswainError('internal', 'it failed', { cause: error });
  }
  expect(troubleOf(new CoxswainError('session_busy', 'it runs'))).toMatchObject({ code: 'session_busy' });
});
