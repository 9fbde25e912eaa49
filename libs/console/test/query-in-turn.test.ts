/** The queries for the status of a session. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { queryInTurn } from '../src/session/query-in-turn.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A repeated query whose answers come when the test wants them. */
function asked() {
  const open: (() => void)[] = [];
  const query = vi.fn(() => new Promise<void>((resolve) => open.push(resolve)));
  const pass = () => vi.advanceTimersByTimeAsync(1_000);
  const answer = async () => {
    open.shift()?.();
    await pass();
  };
  return { query, pass, answer, ...queryInTurn(query, 200) };
}

test('requests within the pause lead to one query', async () => {
  const { query, request, pass } = asked();
  for (let count = 0; count < 3; count++) request();
  expect(query).not.toHaveBeenCalled();
  await pass();
  expect(query).toHaveBeenCalledTimes(1);
});

test('requests during a slow query lead to one more, after its answer', async () => {
  const { query, request, pass, answer } = asked();
  request();
  await pass();
  for (let count = 0; count < 3; count++) {
    request();
    await pass();
  }
  expect(query).toHaveBeenCalledTimes(1);
  await answer();
  expect(query).toHaveBeenCalledTimes(2);
  await answer();
  expect(query).toHaveBeenCalledTimes(2);
  request();
  await pass();
  expect(query).toHaveBeenCalledTimes(3);
});

test('after the stop there is no further query', async () => {
  const { query, request, stop, pass, answer } = asked();
  request();
  await pass();
  request();
  stop();
  await answer();
  request();
  await pass();
  expect(query).toHaveBeenCalledTimes(1);
});
