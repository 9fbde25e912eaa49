import { expect, test } from 'vitest';
import { type Composer, composerKey, EMPTY_COMPOSER, type Key, remember, textOf } from '../src/live-view/mod.ts';

type Typed = string | Key;
const named = (name: string): Key => ({ name });
const [LEFT, RIGHT, UP, DOWN, HOME, END] = [
  named('left'),
  named('right'),
  named('up'),
  named('down'),
  named('home'),
  named('end'),
];
const [BACKSPACE, DELETE, ENTER, ESC] = [named('backspace'), named('delete'), named('return'), named('escape')];
const ALT_ENTER: Key = { name: 'return', meta: true, sequence: '\u001b\r' };
const ctrl = (name: string): Key => ({ name, ctrl: true });

/** Presses keys; a string is typed character by character. */
function press(composer: Composer, ...keys: Typed[]): { composer: Composer; sent: string[] } {
  const sent: string[] = [];
  let current = composer;
  for (const key of keys) {
    for (const one of typeof key === 'string' ? Array.from(key) : [key]) {
      const result =
        typeof one === 'string'
          ? composerKey(current, one, { name: one, sequence: one })
          : composerKey(current, one.sequence, one);
      if (result.type === 'none') continue;
      current = result.composer;
      if (result.type === 'submitted') sent.push(result.text);
    }
  }
  return { composer: current, sent };
}
const typed = (...keys: Typed[]) => textOf(press(EMPTY_COMPOSER, ...keys).composer);

test('the line-editing keys of a shell move and delete', () => {
  expect(typed('ar', LEFT, 'fte', HOME, 'there', END, RIGHT, '!')).toBe('thereafter!');
  const left = Array.from({ length: 6 }, () => LEFT);
  expect(typed('one two three', ...left, ctrl('w'))).toBe('one  three');
  expect(typed('one two three', ...left, ctrl('k'))).toBe('one two');
  expect(typed('one two three', ...left, ctrl('u'))).toBe(' three');
  expect(typed('one two', { name: 'left', ctrl: true }, 'x')).toBe('one xtwo');
  expect(typed('a', { sequence: '\u0007' }, 'b')).toBe('ab');
});

test.each([
  ['a mark on a letter', 'e\u0301'],
  ['a family', '👨‍👩‍👧'],
  ['a flag', '🇳🇱'],
])('keys treat %s as one character', (_what, character) => {
  expect(typed(`a${character}`, BACKSPACE)).toBe('a');
  expect(typed(`a${character}`, LEFT, 'b')).toBe(`ab${character}`);
  expect(typed(`a${character}`, LEFT, DELETE, 'c')).toBe('ac');
});

test('Enter sends; with Alt, as Ctrl-J and behind a backslash it starts a new line', () => {
  const keys = ['a', ALT_ENTER, 'b', { name: 'enter' }, 'c\\', ENTER, 'd', { sequence: '\u001b[13;2u' }, 'e', ENTER];
  const { sent, composer } = press(EMPTY_COMPOSER, ...keys);
  expect(sent).toEqual(['a\nb\nc\nd\ne']);
  expect(textOf(composer)).toBe('');
});

test('up and down move between lines first, and then through the history back to what was typed', () => {
  const known = remember(remember(EMPTY_COMPOSER, 'first'), 'second\nof two');
  const two = press(known, 'ab', ALT_ENTER, 'cd', UP, 'x').composer;
  expect(textOf(two)).toBe('abx\ncd');
  const draft = press(known, 'draft', UP, UP, UP);
  expect(textOf(draft.composer)).toBe('first');
  expect(textOf(press(draft.composer, DOWN, DOWN).composer)).toBe('draft');
});

test('a paste of several lines is one message without control characters, and runs no command', () => {
  const paste = [
    { name: 'paste-start' },
    'a',
    ENTER,
    { name: 'escape', sequence: '\u001b' },
    'b',
    { name: 'paste-end' },
  ];
  const { composer, sent } = press(EMPTY_COMPOSER, ...paste, ENTER);
  expect(sent).toEqual(['a\nb']);
  expect(composer.kind).toBe('steer');
});

test('Esc makes the text an interruption, also if the next character arrives with it; Esc again discards it', () => {
  expect(press(EMPTY_COMPOSER, ESC, 'no').composer).toMatchObject({ kind: 'interrupt', before: 'no' });
  const atOnce = { name: 's', meta: true, sequence: '\u001bs' };
  expect(press(EMPTY_COMPOSER, atOnce, 'top').composer).toMatchObject({ kind: 'interrupt', before: 'stop' });
  expect(press(EMPTY_COMPOSER, ESC, 'no', ESC).composer).toMatchObject({ kind: 'steer', before: '' });
});
