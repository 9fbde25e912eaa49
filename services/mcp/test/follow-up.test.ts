/** `follow_up`, where a run ends and another begins while it is being sent: what is to be done is lost in no case. */
import { type Client, CommandRejectedError } from '@coxswain/client';
import { expect, test } from 'vitest';
import type { ToolUse } from '../src/mcp-tool.ts';
import { followUp } from '../src/tools/start-tools.ts';

type Answer = 'accepted' | 'pending' | 'session_busy' | 'already_delivered';

/** A session that gives these answers, one after the other. @returns what it was sent, and what the tool says. */
async function followedUp(state: string, answers: Answer[]) {
  const sent: string[] = [];
  const send = (verb: string) => async (said: string) => {
    sent.push(`${verb} ${said}`);
    const answer = answers.shift();
    if (answer === undefined) throw new Error('sent more often than was thought of');
    if (answer !== 'accepted' && answer !== 'pending') throw new CommandRejectedError(answer, answer);
    const commandId = `${verb}-${sent.length}`;
    return { commandId, receipt: { stage: 'accepted', n: 1, pendingForNextRun: answer === 'pending' } };
  };
  const session = {
    id: 's1',
    newest: async () => ({ state }),
    prompt: send('prompt'),
    followup: send('followup'),
    revoke: send('revoke'),
  };
  const client = { session: () => session } as unknown as Client;
  const use = { client, actor: undefined, signal: new AbortController().signal } as unknown as ToolUse;
  const told = await followUp.run({ session_id: 's1', body: 'more' }, use);
  expect(answers).toEqual([]);
  return { sent, told };
}

test.each<[what: string, state: string, answers: Answer[], sent: string[], became: string]>([
  ['to one that works', 'function_execute', ['accepted'], ['followup more'], 'followup'],
  ['to one that has ended', 'stopped', ['accepted'], ['prompt more'], 'prompt'],
  [
    'where another has just begun its next run',
    'stopped',
    ['session_busy', 'accepted'],
    ['prompt more', 'followup more'],
    'followup',
  ],
  [
    'where its run has just ended',
    'function_execute',
    ['pending', 'accepted', 'accepted'],
    ['followup more', 'revoke followup-1', 'prompt more'],
    'prompt',
  ],
  [
    'and another has it already',
    'function_execute',
    ['pending', 'already_delivered'],
    ['followup more', 'revoke followup-1'],
    'followup',
  ],
  [
    'and another begins as it is taken back',
    'function_execute',
    ['pending', 'accepted', 'session_busy', 'accepted'],
    ['followup more', 'revoke followup-1', 'prompt more', 'followup more'],
    'followup',
  ],
])('%s', async (_what, state, answers, sent, became) => {
  const done = await followedUp(state, answers);
  expect(done.sent).toEqual(sent);
  expect(done.told).toMatchObject({ session_id: 's1', became });
});
