import { expect, test } from 'vitest';
import { LineEditor } from '../src/terminal/line-editor.ts';

function type(editor: LineEditor, text: string) {
  for (const char of text) editor.key(char, { name: char, sequence: char });
}

test('a line is typed, corrected and submitted', () => {
  const editor = new LineEditor();
  type(editor, 'stop thatt');
  editor.key(undefined, { name: 'backspace' });
  expect(editor.text).toBe('stop that');
  expect(editor.key('\r', { name: 'return' })).toEqual({ type: 'submitted', text: 'stop that', kind: 'steer' });
  expect(editor.open).toBe(false);
});

test('backspace takes a whole character, also one of two code units', () => {
  const editor = new LineEditor();
  type(editor, 'a🚣');
  editor.key(undefined, { name: 'backspace' });
  expect(editor.text).toBe('a');
});

test.each([
  ['a mark on a letter', 'e\u0301'],
  ['a family', '👨‍👩‍👧'],
  ['a flag', '🇳🇱'],
])('backspace, delete and the arrows take %s for one character', (_what, character) => {
  const editor = new LineEditor();
  type(editor, `a${character}`);
  editor.key(undefined, { name: 'left' });
  expect(editor.after).toBe(character);
  editor.key(undefined, { name: 'right' });
  expect(editor.after).toBe('');
  editor.key(undefined, { name: 'backspace' });
  expect(editor.text).toBe('a');
  type(editor, character);
  editor.key(undefined, { name: 'left' });
  editor.key(undefined, { name: 'delete' });
  expect(editor.text).toBe('a');
});

test('the cursor moves by arrows, Home and End, and what is typed goes where it stands', () => {
  const editor = new LineEditor();
  type(editor, 'ar');
  editor.key(undefined, { name: 'left', sequence: '\u001b[D' });
  type(editor, 'fte');
  editor.key(undefined, { name: 'home' });
  type(editor, 'd');
  editor.key('\u0001', { name: 'a', ctrl: true });
  type(editor, 'there');
  editor.key(undefined, { name: 'end' });
  editor.key(undefined, { name: 'right' });
  type(editor, '!');
  expect(editor.text).toBe('theredafter!');
  editor.key(undefined, { name: 'home' });
  editor.key(undefined, { name: 'left' });
  editor.key(undefined, { name: 'backspace' });
  expect(editor).toMatchObject({ text: 'theredafter!', after: 'theredafter!' });
  expect(editor.key('\r', { name: 'return' })).toMatchObject({ type: 'submitted', text: 'theredafter!' });
  expect(editor).toMatchObject({ text: '', after: '' });
});

test('Ctrl-U takes what stands before the cursor, Ctrl-K what stands behind it, Ctrl-W the word before it', () => {
  const editor = new LineEditor();
  type(editor, 'one two three');
  for (let i = 0; i < 6; i++) editor.key(undefined, { name: 'left' });
  editor.key(undefined, { ctrl: true, name: 'w' });
  expect(editor).toMatchObject({ text: 'one  three', after: ' three' });
  editor.key(undefined, { ctrl: true, name: 'k' });
  expect(editor.text).toBe('one ');
  type(editor, 'x');
  editor.key(undefined, { name: 'left' });
  editor.key(undefined, { ctrl: true, name: 'u' });
  expect(editor).toMatchObject({ text: 'x', after: 'x' });
});

test('Esc makes the line an interruption; Esc again takes it back', () => {
  const editor = new LineEditor();
  editor.key(undefined, { name: 'escape', meta: true });
  expect(editor).toMatchObject({ open: true, kind: 'interrupt' });
  type(editor, 'no');
  expect(editor.key('\r', { name: 'return' })).toMatchObject({ kind: 'interrupt', text: 'no' });
  editor.key(undefined, { name: 'escape' });
  editor.key(undefined, { name: 'escape' });
  expect(editor.open).toBe(false);
});

test('who types on at once after Esc has pressed Esc all the same', () => {
  const editor = new LineEditor();
  editor.key(undefined, { name: 's', meta: true, sequence: '\u001bs' });
  type(editor, 'top');
  expect(editor.key('\r', { name: 'return' })).toEqual({ type: 'submitted', text: 'stop', kind: 'interrupt' });
  // An arrow, or a word taken back with Alt, is no text.
  editor.key(undefined, { name: 'left', sequence: '\u001b[D' });
  editor.key(undefined, { name: 'backspace', meta: true, sequence: '\u001b\u007f' });
  expect(editor.open).toBe(false);
});

test('a paste of several lines is one message', () => {
  const editor = new LineEditor();
  editor.key(undefined, { name: 'paste-start' });
  type(editor, 'a');
  expect(editor.key('\r', { name: 'return' })).toEqual({ type: 'edited' });
  type(editor, 'b');
  editor.key(undefined, { name: 'paste-end' });
  expect(editor.key('\r', { name: 'return' })).toMatchObject({ type: 'submitted', text: 'a\nb' });
});

test('control characters and arrows write nothing; Ctrl-W and Ctrl-U delete; Ctrl-C is told', () => {
  const editor = new LineEditor();
  type(editor, 'one two');
  editor.key('\u0007', { sequence: '\u0007' });
  editor.key(undefined, { name: 'up' });
  editor.key('\u0017', { name: 'w', ctrl: true });
  expect(editor.text).toBe('one ');
  editor.key('\u0015', { name: 'u', ctrl: true });
  expect(editor.text).toBe('');
  expect(editor.key('\u0003', { name: 'c', ctrl: true })).toEqual({ type: 'ctrl_c' });
});
