/**
 * One handler on one question: it never rejects, and the handler gets its own copies.
 */
import {
  type AnyHandler,
  type HookPoint,
  type HookQuestion,
  HookRegistration,
  type JsonObject,
  remind,
  rewrite,
  sessionRef,
  startJob,
} from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { runHookHandler } from '../src/mod.ts';

const question = (point: HookPoint = 'PreToolUse', payload?: JsonObject): HookQuestion => ({
  ref: sessionRef('s'),
  effectId: '3-0',
  registration: HookRegistration.parse({ id: 'guard', point }),
  payload: payload ?? { tool: { name: 'read', args: { path: 'a' } } },
  transcript: async () => [{ role: 'user', content: [{ type: 'text', text: 'Hello.' }] }],
  onFeedback: () => undefined,
});

const asked = (handler: AnyHandler, ...of: Parameters<typeof question>) =>
  runHookHandler(handler, question(...of), new AbortController().signal);

describe('an exception of a handler becomes an answer', () => {
  test.each<[string, unknown, string]>([
    ['an error', new Error('no'), 'no'],
    ['a text', 'no', 'no'],
    ['an error without a message', new TypeError(), 'TypeError'],
    ['what cannot be told', { toString: () => ({}) }, 'it threw a value that cannot be converted to text'],
    ['a long message', new Error('n'.repeat(501)), `${'n'.repeat(500)}…`],
  ])('%s', async (_, thrown, message) => {
    const failed = { status: 'failed', code: 'hook_threw', message };
    const throwing = () => {
      throw thrown;
    };
    expect(await asked(throwing)).toEqual(failed);
    expect(await asked(async () => throwing())).toEqual(failed);
  });
});

test('a value without names is returned unchanged', async () => {
  expect(await asked(() => 'anything')).toEqual({ status: 'returned', raw: 'anything' });
  expect(await asked(async () => undefined)).toEqual({ status: 'returned', raw: undefined });
});

test('payload, context and transcript are deeply frozen', async () => {
  const reply = await asked(async (payload, context) => {
    const shown = [payload, context, await context.transcript()];
    const open: object[] = [...shown];
    for (let next = open.pop(); next; next = open.pop()) {
      if (!(next instanceof AbortSignal) && !Object.isFrozen(next)) throw new Error(JSON.stringify(next));
      for (const member of Object.values(next)) if (typeof member === 'object' && member !== null) open.push(member);
    }
    return shown.length;
  });
  expect(reply).toEqual({ status: 'returned', raw: 3 });
});

/** A call and its result, on the wire and in TypeScript. The names of user data are the same in both. */
const DATA = { file_path: 'a', fileMode: 1 };
const WIRE = [
  {
    role: 'assistant',
    content: [{ type: 'call', call_id: 'c', tool: 't', args: DATA, provider_metadata: { p: DATA } }],
  },
  { role: 'tool', call_id: 'c', tool: 't', status: 'ok', is_error: false, content: [] },
] as const;
const CAMEL = [
  { role: 'assistant', content: [{ type: 'call', callId: 'c', tool: 't', args: DATA, providerMetadata: { p: DATA } }] },
  { role: 'tool', callId: 'c', tool: 't', status: 'ok', isError: false, content: [] },
];

test('a handler sees TypeScript names, and unchanged names of data', async () => {
  const tool = { name: 'read', args: DATA, call_id: 'c' };
  const result = { content: [{ type: 'file', media_type: 'image/png', data: '' }], is_error: true, detail: DATA };
  const seen: unknown[] = [];
  const see: AnyHandler = async (payload, { call, transcript }) => void seen.push(payload, call, await transcript());
  const of = question('PostToolUse', { tool, result, is_error: true });
  await runHookHandler(see, { ...of, transcript: async () => [...WIRE] as never }, new AbortController().signal);
  const shown = { name: 'read', args: DATA, callId: 'c' };
  const content = [{ type: 'file', mediaType: 'image/png', data: '' }];
  expect(seen).toEqual([
    { tool: shown, result: { content, isError: true, detail: DATA }, isError: true },
    shown,
    CAMEL,
  ]);
});

describe('a return value is converted to wire names', () => {
  const then = 'then';

  test.each<[string, HookPoint, returned: unknown, raw: unknown]>([
    ['a result', 'PostToolUse', { result: 'r', isError: true }, { result: 'r', is_error: true }],
    ['a result of a helper', 'PostToolUse', rewrite({ isError: true }), { is_error: true }],
    ['arguments', 'PreToolUse', { args: DATA }, { args: DATA }],
    ['an output', 'PostStep', { output: DATA }, { output: DATA }],
    ['messages', 'transform_context', { messages: CAMEL }, { messages: WIRE }],
    ['messages of a helper', 'transform_context', rewrite(CAMEL), { messages: WIRE }],
    ['a reminder', 'post_turn', { body: 'b', dedupeKey: 'k' }, { body: 'b', dedupe_key: 'k' }],
    [
      'a reminder before another',
      'post_turn',
      { reminder: { body: 'b', ttlTurns: 1 }, [then]: remind('c', { roleHint: 'developer' }) },
      { reminder: { body: 'b', ttl_turns: 1 }, [then]: { body: 'c', role_hint: 'developer' } },
    ],
    ['reminders', 'post_turn', [{ reminder: { body: 'b', ttlTurns: 1 } }], [{ reminder: { body: 'b', ttl_turns: 1 } }]],
    [
      'a job',
      'post_turn',
      { job: { status: 'queued', jobId: 'j', metadata: DATA } },
      { job: { status: 'queued', job_id: 'j', metadata: DATA } },
    ],
    [
      'a job of a helper',
      'post_turn',
      startJob({ jobId: 'j', retryHint: { retryable: true, afterMs: 1 } }),
      { job: { status: 'queued', job_id: 'j', retry_hint: { retryable: true, after_ms: 1 } } },
    ],
    ['a key that no return has', 'PreToolUse', { Denny: 'no' }, { Denny: 'no' }],
  ])('%s', async (_, point, returned, raw) => {
    expect(await asked(() => returned, point)).toEqual({ status: 'returned', raw });
  });

  test.each<[string, HookPoint, returned: unknown, words: string]>([
    ['a result', 'PostToolUse', { result: 'r', is_error: false }, 'is_error is unknown; did you mean isError?'],
    ['a helper', 'PostToolUse', rewrite({ is_error: false }), 'is_error is unknown; did you mean isError?'],
    ['a reminder', 'post_turn', { body: 'b', dedupe_key: 'k' }, 'dedupe_key is unknown; did you mean dedupeKey?'],
    [
      'a list of reminders',
      'post_turn',
      [{ reminder: { body: 'b', ttl_turns: 1 } }],
      '[0].reminder.ttl_turns is unknown; did you mean ttlTurns?',
    ],
    ['a job', 'post_turn', startJob({ job_id: 'j' } as never), 'job.job_id is unknown; did you mean jobId?'],
    [
      'messages',
      'transform_context',
      { messages: WIRE },
      'messages[0].content[0].call_id is unknown; did you mean callId?',
    ],
  ])('%s with its wire name is rejected', async (_, point, returned, words) => {
    const message = `${point}: ${words}`;
    expect(await asked(() => returned, point)).toEqual({ status: 'failed', code: 'verdict_invalid', message });
  });
});
