import { expect, test } from 'vitest';
import { readTyped } from '../src/run/typed-command.ts';

test.each([
  ['the other file', false, { do: 'steer', text: 'the other file' }],
  ['  ', false, { do: 'nothing' }],
  ['y', false, { do: 'steer', text: 'y' }],
  ['y', true, { do: 'decide', decision: 'allow', reason: undefined }],
  ['Yes', true, { do: 'decide', decision: 'allow', reason: undefined }],
  ['n', true, { do: 'decide', decision: 'deny', reason: undefined }],
  ['yes, but carefully', true, { do: 'steer', text: 'yes, but carefully' }],
  ['/deny too dangerous', true, { do: 'decide', decision: 'deny', reason: 'too dangerous' }],
  ['/approve', false, { do: 'help', problem: 'nothing waits for an approval' }],
  ['/interrupt stop', false, { do: 'interrupt', text: 'stop', preempt: false }],
  ['/interrupt', false, { do: 'help', problem: '/interrupt needs a text' }],
  ['/followup then test', false, { do: 'followup', text: 'then test' }],
  ['/cancel', false, { do: 'cancel', reason: undefined }],
  ['/cancel-call c1', false, { do: 'cancel_call', callId: 'c1' }],
  ['/canel', false, { do: 'help', problem: 'there is no /canel; did you mean /cancel?' }],
  ['/etc/hosts is wrong', false, { do: 'steer', text: '/etc/hosts is wrong' }],
  ['/detach', false, { do: 'detach' }],
] as const)('%j, an approval waiting: %j', (line, asked, expected) => {
  expect(readTyped(line, 'steer', asked)).toEqual(expected);
});

test('after Esc everything typed interrupts without waiting, also what looks like a decision', () => {
  expect(readTyped('y', 'interrupt', true)).toEqual({ do: 'interrupt', text: 'y', preempt: true });
});
