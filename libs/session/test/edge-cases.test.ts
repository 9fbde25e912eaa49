/**
 * Edge cases of a turn on running sessions, as seen by tools, models and senders.
 */
import { HEADERS, type JsonObject, sessionRef, subjects, textOf } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { hook, returns } from './fake-hooks.ts';
import { ask, call, say } from './fake-model.ts';
import { deaf, taking } from './fake-tools.ts';
import { ASKING, INBOX, type TestBed, testBed } from './test-bed.ts';

const INTERRUPT = { body: 'not that', mode: 'interrupt_immediate' };
const HOOKS = ['PreToolUse', 'gate_tool_calls', 'permission_asked'] as const;

/** Publishes several commands at once: none is handled before all are stored. */
async function atOnce(bed: TestBed, ...commands: readonly (readonly [verb: string, body: JsonObject])[]) {
  for (const [verb, body] of commands) {
    const headers = { [HEADERS.commandId]: `${verb}-now`, [HEADERS.receiptTo]: INBOX };
    bed.bus.publish(subjects.command(sessionRef('s1'), verb), Buffer.from(JSON.stringify(body)), headers);
  }
  await bed.time.settle();
}

async function parked(): Promise<TestBed> {
  const bed = testBed();
  bed.tools = { ask: { run: taking(60_000) } };
  bed.models.answers = [ask(call('a', 'ask')), say('Turning.')];
  await bed.host();
  await bed.start({ permissions: ASKING });
  return bed;
}

describe('1: an interrupt that is there before an approved call fires stops it:', () => {
  test('while parked', async () => {
    const bed = await parked();
    await bed.send('steer', INTERRUPT);
    await bed.send('approve', { call_id: 'a', decision: 'allow' }, { id: 'late' });
    expect(bed.toolSource.runs).toEqual([]);
    expect(bed.told('late')).toEqual(['rejected not_pending']);
    expect(bed.models.requests.at(-1)?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
  });

  test('at the moment of approval, if it is first', async () => {
    const bed = await parked();
    await atOnce(bed, ['steer', INTERRUPT], ['approve', { call_id: 'a', decision: 'allow' }]);
    expect(bed.toolSource.runs).toEqual([]);
    expect(bed.told('steer-now')).toEqual(['accepted', 'delivered pre_tool_dispatch']);
    expect(bed.told('approve-now')).toEqual(['rejected not_pending']);
  });

  test('just after the last decision, while the approved call waits for room', async () => {
    const bed = testBed();
    bed.tools = { slow: { run: taking(10_000) }, ask: {} };
    bed.models.answers = [ask(call('a', 'slow'), call('b', 'ask')), say('Turning.')];
    await bed.host();
    await bed.start({ permissions: ASKING, limits: { parallel_calls: 1 } });
    await bed.send('approve', { call_id: 'b', decision: 'allow' });
    await bed.send('steer', INTERRUPT);
    await bed.time.advance(10_000);
    expect(bed.toolSource.runs.map(({ callId }) => callId)).toEqual(['a']);
    expect(await bed.lines()).toContain('call_ended b skipped');
  });

  test.each(HOOKS)('during %s', async (point) => {
    const bed = testBed();
    bed.tools = { ask: {} };
    bed.hooks.registrations = [hook(point, 'slow')];
    bed.hooks.handlers = {
      slow: async () => {
        await bed.time.clock().sleep(2_000);
        const raw = { PreToolUse: true, gate_tool_calls: [{ allow: true }], permission_asked: { decision: 'allow' } };
        return { status: 'returned', raw: raw[point] };
      },
    };
    bed.models.answers = [ask(call('a', 'ask')), say('Turning.')];
    await bed.host();
    await bed.start({
      permissions: point === 'permission_asked' ? ASKING : { rules: [{ tool: '*', action: 'allow' }] },
    });
    await bed.time.advance(1_000);
    expect(bed.hooks.asked).toHaveLength(1);
    await bed.send('steer', INTERRUPT);
    await bed.time.advance(5_000);
    expect(bed.toolSource.runs).toEqual([]);
    expect(await bed.lines()).toContain('call_ended a skipped');
  });
});

test('2: a steer that arrives while a cancelled tool unwinds is applied in the next turn, not lost', async () => {
  const bed = testBed();
  bed.tools = { deaf: { run: deaf(60_000) } };
  bed.models.answers = [ask(call('a', 'deaf')), say('Turning.')];
  await bed.host();
  await bed.start();
  await bed.send('cancel_call', { call_id: 'a', timeout_ms: 3_000, inject_reminder: false });
  await bed.time.advance(1_000);
  const id = await bed.send('steer', 'the other way');
  expect(bed.models.requests).toHaveLength(1);
  await bed.time.advance(2_000);
  expect(bed.told(id)).toEqual(['accepted', 'delivered post_tool_dispatch']);
  const shown = bed.models.requests[1]?.messages ?? [];
  expect(shown.filter((message) => textOf(message) === 'the other way')).toHaveLength(1);
});

test('3: a steer between the last seam and the end is reported as pending for the next run, and delivered there', async () => {
  const bed = testBed();
  bed.hooks.registrations = [hook('session_end', 'slow')];
  bed.hooks.handlers = {
    slow: async () => {
      await bed.time.clock().sleep(2_000);
      return { status: 'returned', raw: undefined };
    },
  };
  const host = await bed.host();
  await bed.start();
  expect((await host.status(sessionRef('s1')))?.state).toEqual({ tearing_down: 'session_end' });
  const id = await bed.send('steer', 'one more thing');
  await bed.time.advance(3_000);
  expect((await bed.eventsOf('agent_end')).map(({ pending }) => pending)).toEqual([1]);
  expect(bed.told(id)).toEqual(['accepted', 'accepted pending']);
  expect((await host.status(sessionRef('s1')))?.pending.map(({ command_id }) => command_id)).toEqual([id]);
  await bed.send('prompt', 'go on');
  expect(bed.told(id)).toEqual(['accepted', 'accepted pending', 'delivered iteration_start']);
});

test('4: a second start or prompt of a running session is session_busy, and only the rejection is recorded', async () => {
  const bed = testBed();
  bed.models.answers = [say('thinking', { delayMs: 60_000 })];
  await bed.host();
  await bed.start();
  const before = (await bed.records()).length;
  await bed.start({ prompt: 'me too' }, { id: 'second' });
  await bed.send('prompt', 'and me', { id: 'third' });
  expect(bed.told('second')).toEqual(['rejected session_busy']);
  expect(bed.told('third')).toEqual(['rejected session_busy']);
  expect(await bed.lines('s1', before + 1)).toEqual([
    'command_rejected session_busy second',
    'command_rejected session_busy third',
  ]);
  expect(bed.models.requests).toHaveLength(1);
});

test('5: truncated arguments never execute; unknown tools and invalid arguments never reach hooks or gate', async () => {
  const bed = testBed();
  const schema = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };
  bed.tools = { read: { schema } };
  bed.hooks.registrations = HOOKS.map((point) => hook(point, point));
  const truncated = {
    ...call('a', 'read', null),
    problem: { code: 'invalid_call_arguments', message: 'cut off.' },
  };
  bed.models.answers = [ask(truncated, call('b', 'no_such'), call('c', 'read', { path: 7 })), say('I see.')];
  await bed.host();
  await bed.start({ permissions: { rules: [{ tool: '*', action: 'ask' }] } });
  expect(bed.toolSource.runs).toEqual([]);
  expect(bed.hooks.asked).toEqual([]);
  const ends = await bed.eventsOf('call_ended');
  expect(ends.map(({ status, is_error, result }) => [status, is_error, result.detail?.code])).toEqual([
    ['error', true, 'invalid_call_arguments'],
    ['error', true, 'unknown_tool'],
    ['error', true, 'invalid_call_arguments'],
  ]);
  expect(await bed.lines()).toContain('message_complete "I see."');
});

describe('7: a duplicate delivery of any command changes nothing the second time:', () => {
  const cases: Readonly<
    Record<string, readonly [body: JsonObject | string, answers: 'asks' | 'calls' | 'talks' | 'ends' | 'sleeps']>
  > = {
    prompt: ['go on', 'ends'],
    steer: ['left', 'talks'],
    remind: ['mind', 'talks'],
    followup: ['then', 'talks'],
    approve: [{ call_id: 'a', decision: 'deny' }, 'asks'],
    cancel: [{}, 'talks'],
    cancel_call: [{ call_id: 'a' }, 'calls'],
    suspend: [{}, 'talks'],
    resume: [{}, 'sleeps'],
    signal: [{ name: 'tide' }, 'talks'],
    revoke: [{ command_id: 'waits' }, 'talks'],
    replace: [{ command_id: 'waits', body: 'rather this' }, 'talks'],
  };
  test.each(Object.entries(cases))('%s', async (verb, [body, answers]) => {
    const bed = testBed();
    bed.tools = { ask: {}, slow: { run: taking(60_000) } };
    bed.models.answers = {
      asks: [ask(call('a', 'ask')), say('done', { delayMs: 60_000 })],
      calls: [ask(call('a', 'slow')), say('done', { delayMs: 60_000 })],
      talks: [say('thinking', { delayMs: 60_000 })],
      ends: [say('done'), say('again', { delayMs: 60_000 })],
      sleeps: [say('thinking', { delayMs: 1_000 })],
    }[answers];
    const host = await bed.host();
    await bed.start({ permissions: ASKING });
    if (verb === 'revoke' || verb === 'replace') await bed.send('steer', 'this', { id: 'waits' });
    if (answers === 'sleeps') {
      await bed.send('suspend');
      await bed.time.advance(1_000);
    }
    await bed.send(verb, body, { id: 'same' });
    expect(bed.told('same')[0]).toBe('accepted');
    const before = await bed.bytes();
    await bed.send(verb, body, { id: 'same' });
    expect(await bed.bytes()).toEqual(before);
    // Nor on the next host.
    host.abandon();
    await bed.host({}, {});
    await bed.send(verb, body, { id: 'same' });
    const events = await bed.events('s1', before.length + 1);
    expect(events.filter((event) => 'command_id' in event && event.command_id === 'same')).toEqual([]);
  });
});

test('8: text that had been streamed before an abort is kept, marked as partial, and shown in the next run', async () => {
  const bed = testBed();
  bed.models.answers = [say('as far as I', { delayMs: 60_000 }), say('done')];
  await bed.host();
  await bed.start();
  await bed.send('cancel', { reason: 'enough', actor: { name: 'ada', verified: false } });
  const [answer] = await bed.eventsOf('message_complete');
  expect(answer?.message).toEqual({
    role: 'assistant',
    content: [{ type: 'text', text: 'as far as I' }],
    partial: true,
  });
  await bed.send('prompt', 'go on');
  const [said] = (bed.models.requests.at(-1)?.messages ?? []).filter(({ role }) => role === 'assistant');
  // The journal contains the partial text; the model reads by whom and why it was ended.
  expect(said?.content).toEqual([
    { type: 'text', text: 'as far as I' },
    { type: 'text', text: '\n[This response was cut off here: ada cancelled the run: enough. It is incomplete.]' },
  ]);
});

test('9: no rewrite after approval: the call runs with the approved bytes, and no hook is asked again', async () => {
  const bed = testBed();
  bed.tools = { ask: {} };
  let rewrites = 0;
  bed.hooks.registrations = [hook('PreToolUse', 'rewriter')];
  bed.hooks.handlers = {
    rewriter: (request, signal) => returns({ args: { path: `rewrite-${++rewrites}` } })(request, signal),
  };
  bed.models.answers = [ask(call('a', 'ask', { path: 'x' })), say('done')];
  await bed.host();
  await bed.start({ permissions: ASKING });
  const [asking] = await bed.eventsOf('approval_requested');
  await bed.send('approve', { call_id: 'a', decision: 'allow' });
  expect(asking?.args).toEqual({ path: 'rewrite-1' });
  expect(bed.toolSource.runs.map(({ args }) => args)).toEqual([{ path: 'rewrite-1' }]);
  expect(rewrites).toBe(1);
});

describe('interrupt, cancel and approval in the same millisecond', () => {
  const commands = {
    steer: INTERRUPT,
    cancel: { reason: 'enough' },
    approve: { call_id: 'a', decision: 'allow' },
  } as const;

  test.each([
    [['steer', 'cancel', 'approve'], 'skipped', 0, ['accepted', 'delivered pre_tool_dispatch'], 'rejected not_pending'],
    [['steer', 'approve', 'cancel'], 'skipped', 0, ['accepted', 'delivered pre_tool_dispatch'], 'rejected not_pending'],
    [['cancel', 'steer', 'approve'], 'aborted', 0, ['accepted', 'accepted pending'], 'rejected not_pending'],
    [['cancel', 'approve', 'steer'], 'aborted', 0, ['accepted', 'accepted pending'], 'rejected not_pending'],
    [['approve', 'steer', 'cancel'], 'cancelled', 1, ['accepted', 'accepted pending'], 'accepted'],
    [['approve', 'cancel', 'steer'], 'cancelled', 1, ['accepted', 'accepted pending'], 'accepted'],
  ] as const)('%j', async (order, end, runs, steered, approved) => {
    const bed = await parked();
    const before = bed.time.elapsedMs;
    await atOnce(bed, ...order.map((verb) => [verb, commands[verb]] as const));
    expect(bed.time.elapsedMs).toBe(before);
    await bed.time.advance(10_000);
    const lines = await bed.lines();
    expect(lines.filter((line) => line.startsWith('call_ended'))).toEqual([`call_ended a ${end}`]);
    expect(lines.filter((line) => line.startsWith('agent_end'))).toEqual([
      `agent_end cancelled${steered.at(-1) === 'accepted pending' ? ' pending 1' : ''}`,
    ]);
    expect(bed.toolSource.runs.map(({ aborted }) => aborted)).toEqual(Array.from({ length: runs }, () => true));
    expect(bed.told('steer-now')).toEqual(steered);
    expect(bed.told('approve-now')).toEqual([approved]);
    expect(bed.told('cancel-now')).toEqual(['accepted']);
  });
});

test('a late result after a cancel changes nothing, and is noted', async () => {
  const bed = testBed();
  bed.tools = { deaf: { run: deaf(60_000) } };
  bed.models.answers = [ask(call('a', 'deaf')), say('done')];
  await bed.host();
  await bed.start();
  await bed.send('cancel');
  await bed.time.advance(5_000);
  expect(await bed.lines()).toContain('call_ended a cancelled timed_out');
  const before = await bed.bytes();
  await bed.time.advance(120_000);
  expect(bed.toolSource.runs.map(({ ended }) => ended)).toEqual([true]);
  expect(await bed.bytes()).toEqual(before);
  expect(bed.log.some(({ message }) => message === 'late outcome dropped')).toBe(true);
});

test('a logical end is emitted once: nothing that comes after it closes an answer, a turn or a run again', async () => {
  const bed = testBed();
  bed.models.answers = [say('half', { delayMs: 20_000, deaf: true })];
  const host = await bed.host();
  await bed.start();
  await bed.send('cancel');
  await bed.time.advance(5_000);
  await bed.send('cancel');
  host.abandon();
  await bed.host();
  await bed.time.advance(60_000);
  const events = await bed.events();
  for (const type of ['message_complete', 'turn_end', 'agent_end'] as const) {
    expect(
      events.filter((event) => event.type === type),
      type,
    ).toHaveLength(1);
  }
});
