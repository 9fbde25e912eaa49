import { expect, test } from 'vitest';
import { TextPieces } from '../src/text-pieces.ts';
import type { UiEvent } from '../src/ui-events.ts';

const RESTART = 'answer_restarted';
const END = 'answer_ended';

/** @param script texts that are appended, and the types of other events. */
function printed(...script: string[]): string {
  const text = new TextPieces();
  const pieces = script.map((item) => {
    const type = item === RESTART || item === END ? item : 'text_appended';
    return text.of({ type, turn: 1, text: item } as UiEvent);
  });
  return pieces.flat().join('');
}

test.each([
  ['two answers', ['one', END, 'two', END], 'one\n\ntwo'],
  ['a restart that repeats the text and goes on', ['a1 a2', RESTART, 'a1', ' a2 a3', ' a4', END], 'a1 a2 a3 a4'],
  ['a restart before any text', [RESTART, 'a1', END], 'a1'],
  ['a restart during a repetition', ['a1 a2', RESTART, 'a1', RESTART, 'a1 a2 a3', END], 'a1 a2 a3'],
  ['a restart that ends with the same text', ['a1', RESTART, 'a1', END, 'b', END], 'a1\n\nb'],
  ['a restart with another text', ['a1 a2', RESTART, 'a1', ' b2', ' b3', END], 'a1 a2\n\na1 b2 b3'],
  ['a restart that ends before the earlier text', ['a1 a2', RESTART, 'a1', END, 'b', END], 'a1 a2\n\na1\n\nb'],
  ['an answer without text after a restart', ['a1', RESTART, END, 'b', END], 'a1\n\nb'],
])('%s', (_what, script, text) => expect(printed(...script)).toBe(text));
