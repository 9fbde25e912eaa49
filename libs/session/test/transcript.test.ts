/** What a model is shown: calls with their results, in order, and nothing between them. */
import type { Message } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { ask, call, say } from './fake-model.ts';
import { taking } from './fake-tools.ts';
import { ASKING, type TestBed, testBed } from './test-bed.ts';

/** The newest request as one line per message. */
function shown(bed: TestBed): string[] {
  return (bed.models.requests.at(-1)?.messages ?? []).map(line);
}

function line(message: Message): string {
  const parts = message.content.map((part) =>
    part.type === 'text' ? part.text : part.type === 'call' ? `<${part.call_id}>` : part.type,
  );
  const head = message.role === 'tool' ? `tool ${message.call_id} ${message.status}` : message.role;
  return `${head}: ${parts.join(' ')}`;
}

test('results are in the order of calls, whichever ended first', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(300, 'slow') }, quick: { run: taking(10, 'quick') } };
  bed.models.answers = [ask(call('c1', 'slow'), call('c2', 'quick')), say('done')];
  await bed.host();
  await bed.start();
  await bed.time.advance(1_000);
  expect(shown(bed)).toEqual(['user: hello', 'assistant: <c1> <c2>', 'tool c1 ok: slow', 'tool c2 ok: quick']);
});

test('a steer in the middle of a batch follows its results', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(300, 'slow') }, quick: { run: taking(10, 'quick') } };
  bed.models.answers = [ask(call('c1', 'slow'), call('c2', 'quick')), say('done')];
  await bed.host();
  await bed.start();
  await bed.time.advance(50);
  await bed.send('steer', 'look here');
  await bed.send('remind', 'keep in mind');
  await bed.time.advance(1_000);
  expect(shown(bed).slice(2)).toEqual([
    'tool c1 ok: slow',
    'tool c2 ok: quick',
    'user: look here',
    'reminder: keep in mind',
  ]);
});

test('an interrupt at the stop seam: every call has its result first, then the message follows', async () => {
  const bed = testBed();
  bed.tools = { ask: {} };
  bed.models.answers = [ask(call('c1', 'ask'), call('c2', 'ask')), say('done')];
  await bed.host();
  await bed.start({ permissions: ASKING });
  await bed.send('steer', { body: 'not that', mode: 'interrupt' });
  const seen = shown(bed).slice(2);
  expect(seen.map((one) => one.split(':')[0])).toEqual(['tool c1 skipped', 'tool c2 skipped', 'user']);
  expect(seen[2]).toBe('user: not that');
  expect(bed.toolSource.runs).toEqual([]);
});

test('the reminder of a cancelled call follows the results of its batch', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(5_000) }, quick: { run: taking(100, 'quick') } };
  bed.models.answers = [ask(call('c1', 'slow'), call('c2', 'quick')), say('done')];
  await bed.host();
  await bed.start();
  await bed.send('cancel_call', { call_id: 'c1', reason: 'too slow' });
  await bed.time.advance(1_000);
  expect(shown(bed).map((one) => one.split(':')[0])).toEqual([
    'user',
    'assistant',
    'tool c1 cancelled',
    'tool c2 ok',
    'reminder',
  ]);
});

test('audit_only content is in the journal and never shown', async () => {
  const bed = testBed();
  bed.models.answers = [say('done', { delayMs: 100 })];
  await bed.host();
  await bed.start();
  await bed.send('steer', { body: 'for the record', mode: 'audit_only' });
  await bed.time.advance(1_000);
  await bed.send('prompt', 'go on');
  expect(await bed.eventsOf('message_injected')).toMatchObject([{ seam: 'loop_exit', audit_only: true }]);
  expect(JSON.stringify(shown(bed))).not.toContain('for the record');
});

test('calls that can never run have results, too, and an empty result says so', async () => {
  const bed = testBed();
  bed.tools = { mute: { run: async () => ({ status: 'ok', result: { content: [], is_error: false } }) } };
  bed.models.answers = [ask(call('c1', 'nothing_like_it'), call('c2', 'mute')), say('done')];
  await bed.host();
  await bed.start();
  const seen = shown(bed);
  expect(seen[2]).toMatch(/^tool c1 error: There is no tool nothing_like_it/);
  expect(seen[3]).toBe('tool c2 ok: (no output)');
});

test('the partial text of an interrupted answer is in the next run, its unfinished calls are not', async () => {
  const bed = testBed();
  bed.models.answers = [
    { text: 'I was about', calls: [call('c1', 'read')], fail: { code: 'model_unavailable', message: 'gone' } },
    say('done'),
  ];
  await bed.host();
  await bed.start();
  await bed.send('prompt', 'go on');
  expect(shown(bed)).toEqual([
    'user: hello',
    'assistant: I was about \n[This response was cut off here. It is incomplete.]',
    'user: go on',
  ]);
});

test('a recovered session shows exactly the same messages', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(100, 'slow') } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done', { delayMs: 1_000 })];
  const first = await bed.host();
  await bed.start();
  await bed.send('steer', 'look here');
  await bed.time.advance(500);
  const before = bed.models.requests.at(-1);
  first.abandon();
  await bed.host();
  expect(bed.models.requests.at(-1)).not.toBe(before);
  expect(bed.models.requests.at(-1)).toEqual(before);
});
