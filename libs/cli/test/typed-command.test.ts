/** Typed lines that are hard to read. `carry-out.test.ts` tests each command from the line to the session. */
import { expect, test } from 'vitest';
import { readTyped, TYPED_HELP } from '../src/live-view/mod.ts';

test.each([
  ['  ', false, { do: 'nothing' }],
  ['y', false, { do: 'steer', text: 'y' }],
  ['y', true, { do: 'decide', decision: 'allow', reason: undefined }],
  ['Yes', true, { do: 'decide', decision: 'allow', reason: undefined }],
  ['n', true, { do: 'decide', decision: 'deny', reason: undefined }],
  ['yes, but carefully', true, { do: 'steer', text: 'yes, but carefully' }],
  ['/approve', false, { do: 'help', problem: 'no approval is pending' }],
  ['/interrupt', false, { do: 'help', problem: '/interrupt needs a text' }],
  ['/suspend signal deployed', false, { do: 'suspend', forMs: undefined, signal: 'deployed' }],
  ['/suspend 1h30m signal signal', false, { do: 'suspend', forMs: 5_400_000, signal: 'signal' }],
  ['/signal deployed {"v": [1, 2]}', false, { do: 'signal', name: 'deployed', data: { v: [1, 2] } }],
  ['/signal tide  "high"', false, { do: 'signal', name: 'tide', data: 'high' }],
  ['/etc/hosts is wrong', false, { do: 'steer', text: '/etc/hosts is wrong' }],
  ['/notes.md is wrong', false, { do: 'steer', text: '/notes.md is wrong' }],
  ['/', false, { do: 'steer', text: '/' }],
  ['//foo bar', false, { do: 'steer', text: '/foo bar' }],
  ['//cancel', true, { do: 'steer', text: '/cancel' }],
  ['///foo', false, { do: 'steer', text: '//foo' }],
  ['// is a comment', false, { do: 'steer', text: '// is a comment' }],
  ['//server/share is gone', false, { do: 'steer', text: '//server/share is gone' }],
] as const)('%j with a pending approval: %j', (line, asked, expected) => {
  expect(readTyped(line, 'steer', asked)).toEqual(expected);
});

test.each([
  ['/canel', 'there is no /canel; did you mean /cancel?'],
  ['/Cancel now', 'there is no /Cancel; did you mean /cancel?'],
  ['/cancel_call c1', 'there is no /cancel_call; did you mean /cancel-call?'],
  ['/2nd-try', 'there is no /2nd-try; there are /interrupt, /followup, '],
  ['/foo bar\nand more', 'there is no /foo; there are /interrupt, /followup, '],
  ['/größe', 'there is no /größe; there are '],
])('%j is not sent: the answer lists the commands, and how to send it as a text', (line, problem) => {
  const answered = readTyped(line, 'steer', false);
  const [word] = line.split(/\s/);
  expect(answered).toEqual({ do: 'help', problem: expect.stringContaining(problem) });
  expect(answered).toEqual({
    do: 'help',
    problem: expect.stringContaining(`to send it as a text, begin it with /${word}`),
  });
});

test.each([
  ['/suspend tomorrow', '/suspend takes a duration such as 90s'],
  ['/suspend 2h deployed', '/suspend takes a duration such as 90s'],
  ['/suspend signal', '/suspend takes a duration such as 90s'],
  ['/suspend signal a b', '/suspend takes a duration such as 90s'],
  ['/suspend 0s', '/suspend takes a duration such as 90s'],
  ['/signal', '/signal needs a name'],
  ['/signal deployed {"v":', '/signal takes JSON after the name'],
  ['/withdraw one two', '/withdraw takes one id, or nothing'],
  ['/edit', '/edit needs a text'],
])('%j is answered with the arguments that it takes', (line, problem) => {
  expect(readTyped(line, 'steer', false)).toEqual({ do: 'help', problem: expect.stringContaining(problem) });
});

test('the help lists every command', () => {
  const { problem } = readTyped('/nosuchword', 'steer', false) as { problem: string };
  const words = [...problem.matchAll(/(?<=\s)\/[a-z-]+(?=,|\s\()/g)].map(([word]) => word);
  expect(words).toContain('/edit');
  expect(words.filter((word) => word !== '/help' && !TYPED_HELP.includes(word))).toEqual([]);
});

test('the answer to a long word is short', () => {
  const answered = readTyped(`/${'x'.repeat(10_000)}`, 'steer', false);
  expect((answered as { problem: string }).problem.length).toBeLessThan(400);
});

test('after Esc, a text interrupts at once, also if it looks like a decision; a command stays a command', () => {
  expect(readTyped('y', 'interrupt', true)).toEqual({ do: 'interrupt', text: 'y', preempt: true });
  expect(readTyped('/cancel enough', 'interrupt', false)).toEqual({ do: 'cancel', reason: 'enough' });
  expect(readTyped('//cancel', 'interrupt', false)).toEqual({ do: 'interrupt', text: '/cancel', preempt: true });
});
