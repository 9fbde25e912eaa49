/**
 * Leftovers of runners: for the next one on this host, or late. RUNNER-9.
 */
import type { Log } from '@coxswain/ports';
import type { Outcome } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { type LeftoverBounds, Leftovers } from '../src/hosting/leftovers.ts';
import { FeedbackBuffer } from '../src/runner/feedback-buffer.ts';
import { refOf } from './test-bed.ts';

const outcome: Outcome = { type: 'close_outcome', effect_id: '7-0', notes: [] };

function leftovers(bounds?: LeftoverBounds) {
  const lines: [string, object][] = [];
  const note = (fields: object, message: string) => void lines.push([message, fields]);
  const log: Log = { debug: note, info: note, warn: note, error: note };
  const feedback = new FeedbackBuffer();
  const carried = { outcomes: new Map([['7-0', outcome]]), feedback, unansweredFirst: null };
  return { lines, feedback, left: new Leftovers(log, bounds), carried };
}

test('outcomes that a runner leaves go to the next runner on this host, once, without a log line', () => {
  const { left, carried, lines } = leftovers();
  left.keep(refOf('s1'), carried);
  expect(left.take(refOf('s2'))).toBeUndefined();
  expect(left.take(refOf('s1'))).toBe(carried);
  expect(left.take(refOf('s1'))).toBeUndefined();
  left.drop(() => true);
  expect(lines).toEqual([]);
});

test('if another host has the session, outcomes and feedback are dropped, with a log line each', () => {
  const { left, carried, feedback, lines } = leftovers();
  feedback.add('tool:read', 'half of it');
  left.keep(refOf('s1'), carried);
  left.keep(refOf('s2'), carried);
  left.drop(({ sessionId }) => sessionId === 's1');
  expect(lines).toEqual([
    ['late outcome dropped', { session_id: 's1', effect_id: '7-0' }],
    ['feedback for the model is lost: no record holds it', { session_id: 's1' }],
  ]);
  expect(left.take(refOf('s1'))).toBeUndefined();
  expect(left.take(refOf('s2'))).toBe(carried);
});

test('beyond a bound, the leftovers that were kept first are dropped', () => {
  const bytes = Buffer.byteLength(JSON.stringify([outcome]), 'utf8');
  for (const bounds of [
    { maxSessions: 2, maxBytes: 10 * bytes },
    { maxSessions: 10, maxBytes: 2 * bytes },
  ]) {
    const { left, carried, lines } = leftovers(bounds);
    // The second of s1 replaces the first, so that s2 is the oldest.
    for (const sessionId of ['s1', 's2', 's1', 's3']) left.keep(refOf(sessionId), carried);
    expect(lines).toEqual([['late outcome dropped', { session_id: 's2', effect_id: '7-0' }]]);
    expect(left.take(refOf('s1'))).toBe(carried);
    expect(left.take(refOf('s3'))).toBe(carried);
  }
});
