/** Retries, and the errors of the NATS library that allow one. */
import { JetStreamApiError } from '@nats-io/jetstream';
import { errors, PermissionViolationError } from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import {
  busErrorOf,
  NatsRefusedError,
  NatsUnavailableError,
  NoRespondersError,
  NotPermittedError,
  retryRequest,
  retryWhileUnavailable,
  StreamFullError,
  StreamNotFoundError,
} from '../src/mod.ts';

const api = (code: number, err_code: number, description: string) =>
  new JetStreamApiError({ code, err_code, description });

test.each<[error: unknown, kind: new (...args: never[]) => Error, isFinal?: boolean]>([
  [new errors.TimeoutError(), NatsUnavailableError, false],
  [new errors.ClosedConnectionError(), NatsUnavailableError, true],
  [new errors.NoRespondersError('a'), NoRespondersError, false],
  [api(503, 10_008, 'no leader'), NatsUnavailableError, false],
  [api(503, 10_039, 'JetStream is off for the account'), NoRespondersError, true],
  [api(503, 10_077, 'maximum bytes exceeded'), StreamFullError, false],
  [api(404, 10_059, 'stream not found'), StreamNotFoundError],
  [api(400, 10_100, 'invalid'), NatsRefusedError],
  [new PermissionViolationError('no', 'publish', 'a'), NotPermittedError],
  [new Error('it failed', { cause: new PermissionViolationError('no', 'publish', 'a') }), NotPermittedError],
])('%s has an error with a code', (error, kind, isFinal) => {
  const found = busErrorOf(error);
  expect(found?.constructor).toBe(kind);
  expect((found as NatsUnavailableError).isFinal).toBe(isFinal);
  expect(busErrorOf(found)).toBe(found);
});

test('any other error is none of the bus', () => expect(busErrorOf(new Error('a'))).toBeNull());

/** A request that fails with these errors, then succeeds. */
function failing(...failures: Error[]) {
  const request = async () => {
    const failure = failures.shift();
    if (failure) throw failure;
    return 'answered';
  };
  return { request, left: failures };
}

test('a request is retried while NATS does not respond', async () => {
  const { request } = failing(new errors.TimeoutError(), new NoRespondersError('no responders'));
  expect(await retryRequest(request, { pauseMs: 1 })).toBe('answered');
});

test.each([
  ['a rejection', new StreamNotFoundError('a', { code: 404, err_code: 10_059, description: 'not found' })],
  ['a closed connection', new NatsUnavailableError('closed', { isFinal: true })],
  ['an error of the program', new Error('a')],
])('%s is not retried', async (_what, failure) => {
  const { request } = failing(failure);
  await expect(retryRequest(request, { pauseMs: 1 })).rejects.toBe(failure);
});

test('the retries end at their limit, also during a request', async () => {
  const silent = () => new Promise<never>(() => undefined);
  await expect(retryRequest(silent, { withinMs: 20 })).rejects.toThrow(NatsUnavailableError);
  const failures = Array.from({ length: 99 }, () => new errors.TimeoutError());
  const { request, left } = failing(...failures);
  await expect(retryRequest(request, { withinMs: 50, pauseMs: 20 })).rejects.toThrow(NatsUnavailableError);
  expect(left.length).toBeGreaterThan(90);
});

test('a starting service does not wait for a missing subscriber', async () => {
  const warnings: string[] = [];
  const log = { info: () => undefined, warn: (_fields: object, message: string) => void warnings.push(message) };
  const { request, left } = failing(new errors.TimeoutError(), new NoRespondersError('no responders'));
  await expect(retryWhileUnavailable(request, log)).rejects.toThrow(NoRespondersError);
  expect([warnings, left]).toEqual([['NATS does not respond; retrying'], []]);
});
