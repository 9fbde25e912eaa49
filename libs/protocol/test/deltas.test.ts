/**
 * Deltas by their offsets: the new part of a delta, its answer, and the text so far for late readers.
 */
import { describe, expect, test } from 'vitest';
import { AnswerCursor, AnswerSoFar, type Delta } from '../src/mod.ts';

function delta(offset: number, text: string, more: Partial<Delta> = {}): Delta {
  const head = { type: 'message_update', session_id: 's', effect_id: '2-0', epoch: 1, attempt: 1, turn: 1 } as const;
  return { ...head, index: 0, kind: 'text', offset, text, ...more };
}

const whole = (answer: AnswerSoFar) => answer.after(null).pieces.map(({ kind, offset, text }) => [kind, offset, text]);

describe('a reader with "abc" of an answer', () => {
  test.each([
    ['the next delta is new', delta(3, 'de'), 'de'],
    ['of one that overlaps the rest is new', delta(1, 'bcde'), 'de'],
    ['one that repeats is not new', delta(0, 'abc'), 'seen'],
    ['one behind a lost one leaves a gap', delta(4, 'e'), 'gap'],
    ['reasoning has its own offsets', delta(0, 'hm', { kind: 'reasoning' }), 'hm'],
    ['a call and progress are whole', delta(0, '{}', { kind: 'call' }), '{}'],
    ['an attempt that restarts the answer begins at 0', delta(0, 'x', { attempt: 2 }), 'x'],
    ['of a restarted answer the beginning may be lost', delta(1, 'x', { epoch: 2 }), 'gap'],
    ['a host that has lost the session is not heard', delta(3, 'x', { epoch: 0 as never }), 'seen'],
    ['a later answer is new', delta(0, 'x', { effect_id: '10-0' }), 'x'],
    ['an earlier answer is not', delta(3, 'x', { effect_id: '1-5', epoch: 9 }), 'seen'],
  ])('%s', (_what, next, expected) => {
    const cursor = new AnswerCursor();
    cursor.take(delta(0, 'abc'));
    const fit = cursor.take(next);
    expect(typeof fit === 'string' ? fit : fit.text).toBe(expected);
  });

  test('ignores deltas of the answer after its record', () => {
    const cursor = new AnswerCursor();
    cursor.take(delta(0, 'abc'));
    cursor.end('2-0');
    expect(cursor.place).toBeNull();
    expect(cursor.take(delta(3, 'd', { epoch: 7 }))).toBe('seen');
    expect(cursor.take(delta(0, 'n', { effect_id: '3-0' }))).toMatchObject({ text: 'n' });
    // The outcome of an earlier effect ends no answer.
    cursor.end('2-0');
    expect(cursor.place).toMatchObject({ effect_id: '3-0', text: 1 });
  });
});

describe('the text so far', () => {
  test('is assembled from deltas, and restarts with an attempt', () => {
    const answer = new AnswerSoFar();
    expect(answer.after(null)).toEqual({ pieces: [], more: false });
    for (const next of [delta(0, 'h', { kind: 'reasoning' }), delta(0, 'ab'), delta(2, 'c')]) answer.take(next);
    const reader = { effect_id: '2-0', epoch: 1, attempt: 1, text: 1, reasoning: 1 };
    expect(whole(answer)).toEqual([
      ['reasoning', 0, 'h'],
      ['text', 0, 'abc'],
    ]);
    expect(answer.after(reader).pieces).toMatchObject([{ kind: 'text', offset: 1, text: 'bc' }]);
    answer.take(delta(0, 'new', { attempt: 2 }));
    expect(answer.after(reader).pieces).toMatchObject([{ attempt: 2, kind: 'text', offset: 0, text: 'new' }]);
    answer.end('2-0');
    expect(whole(answer)).toEqual([]);
  });

  test('has the turn of the newest answer, also if its beginning was lost', () => {
    const answer = new AnswerSoFar();
    answer.take(delta(0, 'abc'));
    expect(answer.take(delta(5, 'x', { effect_id: '3-0', turn: 2 }))).toBe('gap');
    expect([answer.turn, answer.text]).toEqual([2, '']);
  });

  test('comes in pieces that never split a character', () => {
    const answer = new AnswerSoFar();
    answer.take(delta(0, 'ab😀cd'));
    const cursor = new AnswerCursor();
    const got: string[] = [];
    for (let more = true; more; ) {
      const reply = answer.after(cursor.place, 3);
      more = reply.more;
      for (const piece of reply.pieces) if (typeof cursor.take(piece) !== 'string') got.push(piece.text);
    }
    expect(got).toEqual(['ab', '😀c', 'd']);
  });

  test('is kept up to its bound', () => {
    const answer = new AnswerSoFar(4);
    for (const next of [delta(0, 'abc'), delta(3, 'def'), delta(6, 'g')]) answer.take(next);
    expect(answer.after(null)).toMatchObject({ pieces: [{ text: 'abcd' }], more: false });
  });
});
