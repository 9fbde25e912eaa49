/** Calls of served tools, without a bus. */
import { type RunnableCall, sessionRef, type ToolCallContext } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { toolWork } from '../src/mod.ts';

const context = { abortSignal: new AbortController().signal, ref: sessionRef('s') } as ToolCallContext;

test.each<[string, unknown, string]>([
  ['an error', new Error('it broke'), 'it broke'],
  ['a text', 'it broke', 'it broke'],
  ['what cannot be told', Object.create(null), 'it threw a value that cannot be converted to text'],
])('a call whose tool throws %s is an error', async (_, thrown, text) => {
  const announced = { name: 't', traits: { long_running: false } };
  const run = () => Promise.reject(thrown);
  const { run: call } = toolWork({ announced, check: async (args) => ({ args }), run }, {}) as RunnableCall;
  const content = [{ type: 'text', text }];
  expect(await call({}, context)).toEqual({
    status: 'error',
    result: { content, is_error: true, detail: { code: 'tool_failed' } },
  });
});
