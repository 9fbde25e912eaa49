/** Approvals without a terminal, with `--on-ask deny`. */
import type { Session } from '@coxswain/client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { unattendedParticipant } from '../src/run/mod.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A participant that gets these results of denials, in order, and then successes. */
function denying(results: (Error | null)[], isUndecided: () => Promise<boolean> = async () => true) {
  const deny = vi.fn(async (_callId: string) => {
    const error = results.shift() ?? null;
    if (error !== null) throw error;
  });
  const state = async () => ({ approvals: (await isUndecided()) ? [{ callId: 'c' }] : [] });
  const session = { id: 's', deny, state } as unknown as Session;
  const tasks: Promise<unknown>[] = [];
  const notices: string[] = [];
  const failures: Error[] = [];
  const over = new AbortController();
  const participant = unattendedParticipant('deny', {
    view: { notice: (text) => void notices.push(text) },
    own: (task) => void tasks.push(task),
    fail: (error) => void failures.push(error),
    over: over.signal,
  });
  const opened = () => participant.approvalsOpen([{ session, callId: 'c', tool: 'edit_file', summary: '' } as never]);
  expect([opened(), opened()]).toEqual(['go_on', 'go_on']);
  const ended = async () => {
    await vi.advanceTimersByTimeAsync(60_000);
    await Promise.all(tasks);
  };
  return { deny, notices, failures, over, ended };
}

const lost = new Error('no answer');

test('a failed denial is repeated', async () => {
  const { deny, notices, failures, ended } = denying([lost, lost]);
  await ended();
  expect(deny).toHaveBeenCalledTimes(3);
  expect(notices).toEqual(Array(2).fill('edit_file could not be denied: no answer'));
  expect(failures).toEqual([]);
});

test('a denial that fails again and again ends the following with its error', async () => {
  const { deny, failures, ended } = denying(Array(9).fill(lost), () => Promise.reject(lost));
  await ended();
  expect(deny).toHaveBeenCalledTimes(5);
  expect(failures).toEqual([lost]);
});

test('a denial is not repeated after a decision, nor after the end of the following', async () => {
  const decided = denying([lost], async () => false);
  await decided.ended();
  expect([decided.deny.mock.calls.length, decided.notices]).toEqual([1, []]);
  const left = denying([lost]);
  await vi.advanceTimersByTimeAsync(0);
  left.over.abort();
  await left.ended();
  expect([left.deny.mock.calls.length, left.failures]).toEqual([1, []]);
});
