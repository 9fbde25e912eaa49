/** `streamAnswer`: one answer, its deltas, and the calls in it that can never run. */
import { BOUNDS, type Delta } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { ask, call, say } from './fake-model.ts';
import { refOf, testBed } from './test-bed.ts';

const SCHEMA = {
  type: 'object',
  properties: { path: { type: 'string' }, depth: { type: 'integer' } },
  required: ['path'],
  additionalProperties: false,
};

describe('a call that can never run is marked, gets an error result and does not run', () => {
  test.each([
    ['an unknown tool', call('c1', 'raed', {}), 'unknown_tool', 'Available tools: read.'],
    ['a missing argument', call('c1', 'read', {}), 'invalid_call_arguments', "must have required property 'path'"],
    ['a wrong type', call('c1', 'read', { path: 7 }), 'invalid_call_arguments', 'path must be string'],
    [
      'an unknown argument',
      call('c1', 'read', { path: 'a', mode: 1 }),
      'invalid_call_arguments',
      'unknown property "mode"',
    ],
    ['no object', call('c1', 'read', [1]), 'invalid_call_arguments', 'not a JSON object'],
    [
      'arguments that did not parse',
      { ...call('c1', 'read', null), problem: { code: 'invalid_call_arguments', message: 'Unexpected end.' } },
      'invalid_call_arguments',
      'Unexpected end.',
    ],
  ] as const)('%s', async (_what, asked, code, message) => {
    const bed = testBed();
    bed.tools = { read: { schema: SCHEMA } };
    bed.models.answers = [ask(asked), say('done')];
    await bed.host();
    await bed.start();
    const [answer] = await bed.eventsOf('message_complete');
    expect(answer?.message.content).toMatchObject([{ type: 'call', problem: { code } }]);
    const [ended] = await bed.eventsOf('call_ended');
    expect(ended).toMatchObject({ status: 'error', result: { detail: { code } } });
    expect(ended?.result.content).toMatchObject([{ text: expect.stringContaining(message) }]);
    expect(await bed.eventsOf('call_started')).toEqual([]);
    expect(bed.toolSource.runs).toEqual([]);
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });
});

test('RUNNER-8: the calls beyond the bound of a batch get error results, the others run', async () => {
  const bed = testBed();
  const broken = { ...call('bad', 'read', null), problem: { code: 'invalid_call_arguments', message: 'Cut.' } };
  const calls = [broken, ...Array.from({ length: BOUNDS.callsPerBatchMax + 5 }, (_, i) => call(`c${i}`, 'read'))];
  bed.models.answers = [ask(...calls), say('done')];
  await bed.host();
  await bed.start();
  expect(bed.toolSource.runs).toHaveLength(BOUNDS.callsPerBatchMax - 1);
  const refused = (await bed.eventsOf('call_ended')).filter(({ result }) => result.detail?.code === 'too_many_calls');
  expect(refused.map(({ call_id }) => call_id)).toEqual(['c63', 'c64', 'c65', 'c66', 'c67', 'c68']);
});

test('RUNNER-8: arguments of many small parts, more than a record can hold, get an error result', async () => {
  const bed = testBed();
  const list = Array.from({ length: 150_000 }, () => 1);
  bed.models.answers = [ask(call('c1', 'read', { list: [] }), call('c2', 'read', { list })), say('done')];
  await bed.host();
  await bed.start();
  expect((await bed.eventsOf('call_ended')).map(({ result }) => result.detail?.code)).toEqual([
    'arguments_too_large',
    undefined,
  ]);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('two calls of one id become two', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read'), call('c1', 'read')), say('done')];
  await bed.host();
  await bed.start();
  expect(bed.toolSource.runs.map(({ callId }) => callId)).toEqual(['c1', 'c1_2']);
});

test('deltas carry effect, epoch, attempt, a dense index and their offset, and come before the answer is durable', async () => {
  const bed = testBed();
  const heard: Delta[] = [];
  bed.bus.subscribeDeltas(refOf(), (delta) => heard.push(delta));
  bed.models.answers = [say('hello', { pieces: ['hel', 'lo'] })];
  await bed.host();
  await bed.start();
  expect(heard).toEqual([
    {
      type: 'message_update',
      session_id: 's1',
      effect_id: '2-0',
      epoch: 1,
      attempt: 1,
      turn: 1,
      index: 0,
      kind: 'text',
      offset: 0,
      text: 'hel',
    },
    expect.objectContaining({ index: 1, offset: 3, text: 'lo' }),
  ]);
  expect(await bed.eventsOf('message_complete')).toMatchObject([{ body_streamed: true }]);
});

test('a host has the text so far of the answer that it streams, until the run ends', async () => {
  const bed = testBed();
  bed.models.answers = [say('Hello there', { pieces: ['Hello', ' there'], endsAfterMs: 1_000 })];
  const host = await bed.host();
  await bed.start();
  const answer = { effect_id: '2-0', epoch: 1, attempt: 1, turn: 1, kind: 'text' };
  expect(host.answer(refOf(), null)).toMatchObject({ pieces: [{ ...answer, offset: 0, text: 'Hello there' }] });
  const place = { effect_id: '2-0', epoch: 1, attempt: 1, text: 5, reasoning: 0 };
  expect(host.answer(refOf(), place)).toMatchObject({ pieces: [{ offset: 5, text: ' there' }], more: false });
  expect(host.answer(refOf('other'), null)).toBeNull();
  await bed.time.advance(1_000);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  expect(host.answer(refOf(), null)).toEqual({ pieces: [], more: false });
});

test('an answer without a text delta says so', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host();
  await bed.start();
  expect((await bed.eventsOf('message_complete')).map(({ body_streamed }) => body_streamed)).toEqual([false, true]);
});

test('a model that fails ends the run as failed, and its text is kept as partial', async () => {
  const bed = testBed();
  bed.models.answers = [say('I was', { fail: { code: 'model_unavailable', message: 'gone' } })];
  await bed.host();
  await bed.start();
  expect((await bed.lines()).slice(-5)).toEqual([
    'message_complete partial "I was"',
    'run_failed model model_unavailable',
    'turn_end 1',
    'tools_closed',
    'agent_end error',
  ]);
});

test('a model that is no longer available ends the run as failed', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read'))];
  bed.tools = {
    read: {
      run: async () => {
        bed.models.missing = { code: 'model_key_missing', message: 'it was revoked' };
        return { status: 'ok', result: { content: [], is_error: false } };
      },
    },
  };
  await bed.host();
  await bed.start();
  expect((await bed.lines()).filter((line) => line.startsWith('run_failed'))).toEqual([
    'run_failed model model_key_missing',
  ]);
});

test('a cancelled run keeps the text so far; a model that does not stop is abandoned after the grace period', async () => {
  const bed = testBed();
  bed.models.answers = [say('never', { delayMs: 600_000, deaf: true })];
  await bed.host();
  await bed.start();
  await bed.send('cancel');
  await bed.time.advance(BOUNDS.abortGraceMs - 1);
  expect((await bed.lines()).at(-1)).toBe('control_outcome cancel cancelled');
  await bed.time.advance(1);
  expect((await bed.lines()).at(-1)).toBe('agent_end cancelled');
});

test('RUNNER-8: a model call that crashes restart too often ends the run', async () => {
  const bed = testBed();
  bed.models.answers = [say('never', { delayMs: 600_000 })];
  let host = await bed.host();
  await bed.start();
  for (let i = 0; i <= BOUNDS.modelRestartsMax; i++) {
    host.abandon();
    host = await bed.host();
  }
  expect(bed.models.requests).toHaveLength(BOUNDS.modelRestartsMax + 1);
  expect(await bed.lines()).toContain('run_failed model model_restarts_exhausted');
  expect((await bed.lines()).at(-1)).toBe('agent_end error');
});

test('RUNNER-8: the third restart of a model call is delayed', async () => {
  const bed = testBed();
  bed.models.answers = [say('never', { delayMs: 600_000 })];
  let host = await bed.host();
  await bed.start();
  for (let i = 1; i <= 3; i++) {
    host.abandon();
    await bed.time.settle();
    bed.models.requests.length = 0;
    host = await bed.host();
    expect(bed.models.requests).toHaveLength(i < 3 ? 1 : 0);
  }
  await bed.time.advance(BOUNDS.modelRestartBackoffMs);
  expect(bed.models.requests).toHaveLength(1);
  host.abandon();
});
