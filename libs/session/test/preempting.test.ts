/**
 * Preempting interrupts on running sessions, as seen by models, tools and the journal.
 */
import { textOf } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { ask, call, say } from './fake-model.ts';
import { deaf, taking } from './fake-tools.ts';
import { ASKING, testBed } from './test-bed.ts';

const CUT_OFF = '\n[This response was cut off here. It is incomplete.]';
const now = { body: 'the other file', mode: 'interrupt_immediate', preempt: true };

test('a streaming model is stopped immediately; its partial text is in the journal and in the next prompt', async () => {
  const bed = testBed();
  bed.models.answers = [say('As I was saying', { delayMs: 60_000 }), say('Turning.')];
  await bed.host();
  await bed.start();
  const id = await bed.send('steer', now);
  expect(bed.time.elapsedMs).toBe(0);
  expect(await bed.lines()).toEqual(
    expect.arrayContaining([
      'message_complete partial "As I was saying"',
      `message_injected ${id} steer at iteration_end`,
      'message_complete "Turning."',
    ]),
  );
  expect(bed.told(id)).toEqual(['accepted', 'delivered iteration_end']);
  expect(bed.models.requests[1]?.messages.map((message) => [message.role, textOf(message)])).toEqual([
    ['user', 'hello'],
    ['assistant', `As I was saying${CUT_OFF}`],
    ['user', 'the other file'],
  ]);
  expect((await bed.eventsOf('agent_end')).map(({ stop_reason, turns }) => [stop_reason, turns])).toEqual([
    ['end_turn', 2],
  ]);
});

test('a model that does not stop is abandoned after its grace period, and its later text changes nothing', async () => {
  const bed = testBed();
  bed.models.answers = [say('I will not', { delayMs: 20_000, deaf: true })];
  await bed.host();
  await bed.start();
  await bed.send('steer', now);
  expect(await bed.eventsOf('message_complete')).toEqual([]);
  bed.models.answers = [say('Turning.')];
  await bed.time.advance(5_000);
  expect((await bed.lines()).filter((line) => line.startsWith('message_complete'))).toEqual([
    'message_complete partial',
    'message_complete "Turning."',
  ]);
  const records = (await bed.records()).length;
  await bed.time.advance(60_000);
  expect(await bed.records()).toHaveLength(records);
});

test('running tools are asked to stop, and the message is delivered after they have', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(60_000) }, slower: { run: taking(90_000) } };
  bed.models.answers = [ask(call('a', 'slow'), call('b', 'slower')), say('Turning.')];
  await bed.host();
  await bed.start();
  const id = await bed.send('steer', now);
  expect(bed.toolSource.runs.map(({ aborted, ended }) => [aborted, ended])).toEqual([
    [true, true],
    [true, true],
  ]);
  expect((await bed.lines()).filter((line) => /^(call_ended|loop_checkpoint|message_injected)/.test(line))).toEqual([
    'call_ended a cancelled',
    'call_ended b cancelled',
    `loop_checkpoint post_tool_dispatch delivers ${id}`,
    `message_injected ${id} steer at post_tool_dispatch`,
  ]);
  expect(bed.models.requests[1]?.messages.map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'tool',
    'tool',
    'user',
  ]);
});

test('a tool that does not stop is waited for no longer than its grace; its late result is dropped and noted', async () => {
  const bed = testBed();
  bed.tools = { deaf: { run: deaf(60_000) } };
  bed.models.answers = [ask(call('a', 'deaf')), say('Turning.')];
  await bed.host();
  await bed.start();
  await bed.send('steer', now);
  await bed.time.advance(5_000);
  expect(await bed.lines()).toContain('call_ended a cancelled timed_out');
  expect(await bed.lines()).toContain('message_complete "Turning."');
  const records = (await bed.records()).length;
  await bed.time.advance(120_000);
  expect(await bed.records()).toHaveLength(records);
  expect(bed.log.some(({ message }) => message === 'late outcome dropped')).toBe(true);
});

test('while a call waits for a person nothing waits: it is skipped and the model asked again', async () => {
  const bed = testBed();
  bed.tools = { ask: {} };
  bed.models.answers = [ask(call('a', 'ask')), say('Turning.')];
  await bed.host();
  await bed.start({ permissions: ASKING });
  await bed.send('steer', { body: 'the other file', preempt: true });
  const late = await bed.send('approve', { call_id: 'a', decision: 'allow' });
  expect(await bed.lines()).toEqual(expect.arrayContaining(['approval_decided a superseded', 'call_ended a skipped']));
  expect(bed.told(late)).toEqual(['rejected not_pending']);
  expect(bed.toolSource.runs).toEqual([]);
});

describe('a crash', () => {
  test('after the record of the message: the next host does not ask the model for what was ended', async () => {
    const bed = testBed();
    bed.models.answers = [say('lost with its host', { delayMs: 60_000, deaf: true })];
    const host = await bed.host();
    await bed.start();
    await bed.send('steer', now);
    host.abandon();
    bed.models.answers = [say('Turning.')];
    await bed.host();
    await bed.time.settle();
    expect(bed.models.requests.map(({ turn }) => turn)).toEqual([1, 2]);
    expect((await bed.lines()).filter((line) => line.startsWith('message_complete'))).toEqual([
      'message_complete partial',
      'message_complete "Turning."',
    ]);
  });
});
