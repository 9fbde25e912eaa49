// In memory: no server, no key, and virtual time. See docs/guides/testing.md of Coxswain.
import { join } from 'node:path';
import test from 'node:test';
import { atSeam, calls, given, prompt, says, steer } from '@coxswain/testing';
import countWords from '../tools/count-words.mjs';

const root = join(import.meta.dirname, '..');
const scene = (/** @type {import('@coxswain/testing').ScriptedAnswer[]} */ ...model) =>
  given({
    persona: join(root, 'personas/clerk.yaml'),
    hooks: join(root, 'coxswain.yaml'),
    tools: [countWords],
    root,
    model,
  });

test('the clerk counts, and says how many words there are', async () => {
  const journal = await scene(calls('count_words', { text: 'steer by the stars' }), says('Four words.')).when(
    prompt('How many words?'),
  );
  journal
    .expectCalls([{ tool: 'count_words', status: 'ok', text: '4 words' }])
    .expectResult({ stopReason: 'end_turn', text: 'Four words.' });
});

test('no model reads what holds keys', async () => {
  const journal = await scene(calls('read_file', { path: '.env' }), says('I may not.')).when(prompt('Which keys?'));
  journal.expect('hook_vetoed', { type: 'call_ended', tool: 'read_file', status: 'denied' }).expectNone('call_started');
});

test('what is said while it works reaches the model before its next answer', async () => {
  const journal = await scene(calls('count_words', { text: 'ahoy' }), says('Un mot.')).when(
    prompt('How many words?'),
    atSeam('post_tool_dispatch', steer('in French, please')),
  );
  journal.expectMessage({ role: 'user', text: /in French/ });
});
