/**
 * Suspended sessions: their timers outlive passivation, crashes and restarts, and wake them on any host.
 */
import { createParkTool } from '@coxswain/adapter-tools';
import type { Timers } from '@coxswain/ports';
import { type JsonObject, textOf } from '@coxswain/protocol';
import { expect, test, vi } from 'vitest';
import { inputOfTimer } from '../src/runner/check-command.ts';
import { ask, call, say } from './fake-model.ts';
import { answer, taking } from './fake-tools.ts';
import { refOf, type TestBed, testBed } from './test-bed.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const PARK = (args: JsonObject) => ask(call('c1', 'park', args as never));

/** A session that suspended itself, and its host. */
async function asleep(bed: TestBed, args: JsonObject) {
  bed.models.answers = [PARK(args), say('awake')];
  const host = await bed.host({ sweepEveryMs: HOUR }, { tools: createParkTool() });
  await bed.start();
  return host;
}

/** The reminders in the last model request. */
function reminders(bed: TestBed): string[] {
  const messages = bed.models.requests.at(-1)?.messages ?? [];
  return messages.filter(({ role }) => role === 'reminder').map(textOf);
}

/** Lets days pass at the cost of two hours, with everything that is due in between. */
async function pass(bed: TestBed, ms: number): Promise<void> {
  bed.time.leap(ms - 2 * HOUR);
  await bed.time.advance(2 * HOUR);
}

test('a timer that fires before its host expects it is recorded at its own time', async () => {
  const bed = testBed();
  const real = bed.time.clock();
  // The host's estimate lags behind during the suspension.
  let behindMs = 0;
  const clock = { ...real, nowMs: () => real.nowMs() - behindMs };
  bed.models.answers = [PARK({ for_ms: 1_000 }), say('awake')];
  await bed.host({}, { tools: createParkTool(), clock });
  await bed.start();
  behindMs = 60;
  await bed.time.advance(1_000);
  const [resumed] = await bed.eventsOf('resumed');
  expect(resumed).toMatchObject({ cause: 'timeout', slept_ms: 1_000 });
});

test('suspended for 30 days, with five restarts of its host, a session continues without a loss', async () => {
  const bed = testBed();
  bed.models.answers = [PARK({ for_ms: 30 * DAY, reason: 'the tide' }), say('awake'), say('and that')];
  const options = { sweepEveryMs: HOUR };
  const ports = { tools: createParkTool() };
  let host = await bed.host(options, ports);
  await bed.start({ persona: { name: 'mate', prompt: 'Stay on watch.' } });
  await bed.send('steer', 'Mind the rocks.');
  await bed.send('followup', 'Then moor.');
  const before = await bed.lines();
  for (let restart = 0; restart < 5; restart++) {
    await pass(bed, 5 * DAY);
    // Alternately by a crash, with a command in between, and in order.
    if (restart % 2 === 0) host.abandon();
    else await host.stop();
    if (restart === 2) await bed.send('steer', 'And the buoys.');
    host = await bed.host(options, ports);
    expect((await host.status(refOf()))?.suspended).toEqual({
      since: '2030-01-01T00:00:00.000Z',
      reason: 'the tide',
      until: '2030-01-31T00:00:00.000Z',
      on_timeout: 'resume_with_summary',
      signal: null,
      by_itself: true,
    });
  }
  await pass(bed, 5 * DAY - 1);
  expect(bed.models.requests).toHaveLength(1);
  await bed.time.advance(1);
  await bed.time.settle();
  expect(await bed.lines()).toEqual([
    ...before,
    'owned 2',
    'steering_received steer-4 finish_step',
    'owned 3',
    'timer_fired suspension',
    'resumed timeout',
    'message_injected c1 direct at post_resume',
    'turn_start 2',
    'loop_checkpoint iteration_start delivers steer-2 steer-4',
    'message_injected steer-2 steer at iteration_start',
    'message_injected steer-4 steer at iteration_start',
    'message_complete "awake"',
    'turn_end 2',
    'message_injected followup-3 followup at steering_check',
    'turn_start 3',
    'message_complete "and that"',
    'turn_end 3',
    'tools_closed',
    'agent_end end_turn',
  ]);
  const [, request] = bed.models.requests;
  expect(request?.system).toContain('Stay on watch.');
  expect(request?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'reminder', 'user', 'user']);
  expect(textOf(request?.messages[3] as never)).toMatch(/^You parked this session \(the tide\)\. It slept for 30 d/);
});

test('a suspended session stays on disk: comparisons of journals with notes claim it once', async () => {
  const bed = testBed();
  bed.models.answers = [PARK({ for_ms: DAY }), say('awake')];
  const host = await bed.host({}, { tools: createParkTool() });
  await bed.start();
  let loads = 0;
  for (let minute = 0; minute < 60; minute++) {
    await bed.time.advance(MINUTE / 2);
    loads += host.live;
    await bed.time.advance(MINUTE / 2);
    loads += host.live;
  }
  expect(host.live).toBe(0);
  const claims = bed.log.filter(({ message }) => message.includes('no active-session note'));
  expect(claims).toHaveLength(1);
  expect(bed.log.filter(({ level }) => level === 'warn')).toEqual([]);
  // While it falls asleep, and after the claim.
  expect(loads).toBeLessThanOrEqual(4);
});

test('a suspended session whose timer the store has lost wakes a day late at most, without a restart of its host', async () => {
  const bed = testBed();
  bed.models.answers = [PARK({ for_ms: 2 * DAY }), say('awake')];
  await bed.host({}, { tools: createParkTool() });
  await bed.start();
  await bed.time.advance(HOUR);
  expect(bed.log.filter(({ message }) => message.includes('no active-session note'))).toHaveLength(1);
  await bed.bus.purge.timers(refOf());
  await pass(bed, 3 * DAY);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('queued messages wait with a parked session: after 30 days and five hosts each is delivered once, at its seam', async () => {
  const bed = testBed();
  bed.tools = {
    park: {
      run: async ({ onFeedback }) => {
        onFeedback('the tide gauge is uncertain');
        return { ...answer('parked'), park: { for_ms: 30 * DAY } };
      },
    },
  };
  bed.models.answers = [PARK({}), say('awake'), say('moored')];
  let host = await bed.host({ sweepEveryMs: HOUR });
  await bed.start({ limits: { wall_time_ms: MINUTE } });
  const said: Readonly<Record<string, [verb: string, body: JsonObject]>> = {
    mind: ['remind', { body: 'Mind the gulls.', ttl_turns: 1 }],
    rocks: ['steer', { body: 'Mind the rocks.' }],
    log: ['steer', { body: 'Noted by the harbour office.', mode: 'audit_only' }],
    moor: ['followup', { body: 'Then moor.' }],
    sell: ['followup', { body: 'Then sell the ship.' }],
  };
  for (const [id, [verb, body]] of Object.entries(said)) await bed.send(verb, body, { id });
  await bed.send('revoke', { command_id: 'sell' });
  for (let restart = 1; restart <= 5; restart++) {
    await pass(bed, 5 * DAY);
    expect(host.live).toBe(0);
    if (restart % 2 === 0) await host.stop();
    else host.abandon();
    host = await bed.host({ sweepEveryMs: HOUR });
    expect((await host.status(refOf()))?.pending).toHaveLength(4);
  }
  await pass(bed, 5 * DAY);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  expect(bed.models.requests).toHaveLength(3);
  const shown = (number: number) => (bed.models.requests[number]?.messages ?? []).map(textOf).join('\n');
  for (const text of ['the tide gauge is uncertain', 'It slept for 30 d', 'Mind the gulls.', 'Mind the rocks.'])
    expect(shown(1).split(text), text).toHaveLength(2);
  // The reminder was for one turn; the steer stays for the run.
  expect(shown(2)).not.toContain('Mind the gulls.');
  expect(shown(2)).toContain('Mind the rocks.');
  expect(shown(2)).toContain('Then moor.');
  for (const number of [1, 2]) expect(shown(number)).not.toMatch(/harbour office|sell the ship/);
  expect(Object.keys(said).map((id) => bed.told(id).at(-1))).toEqual([
    'delivered iteration_start',
    'delivered iteration_start',
    'delivered loop_exit',
    'delivered steering_check',
    'revoked',
  ]);
  // Time of a suspension does not count.
  expect(await bed.eventsOf('budget_threshold')).toEqual([]);
});

test('a parked session leaves memory once its timer is stored, and its timer wakes it', async () => {
  const bed = testBed();
  const host = await asleep(bed, { for_ms: 3 * HOUR });
  await bed.time.advance(2 * HOUR);
  expect(host.live).toBe(0);
  await bed.time.advance(HOUR);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  expect(reminders(bed)).toEqual([expect.stringContaining('It slept for 3 h')]);
});

test('a session whose timer is not stored stays in memory and retries', async () => {
  const bed = testBed();
  let isOut = true;
  let tries = 0;
  const timers: Timers = {
    async schedule(...timer) {
      tries++;
      if (isOut) throw new Error('the store does not answer');
      await bed.bus.timers.schedule(...timer);
    },
  };
  bed.models.answers = [PARK({ for_ms: 3 * HOUR }), say('awake')];
  const host = await bed.host({ sweepEveryMs: MINUTE }, { tools: createParkTool(), timers });
  await bed.start();
  await bed.time.advance(10 * MINUTE);
  expect(host.live).toBe(1);
  // With back-off: a second, two, four … up to half a minute.
  expect(tries).toBeLessThan(40);
  isOut = false;
  await bed.time.advance(5 * MINUTE);
  expect(host.live).toBe(0);
  await bed.time.advance(3 * HOUR);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('a timer that a crash kept from the store is stored by the next host, which need not own the session', async () => {
  const bed = testBed();
  bed.models.answers = [PARK({ for_ms: HOUR }), say('awake')];
  const lost: Timers = { schedule: () => new Promise(() => {}) };
  const first = await bed.host({}, { tools: createParkTool(), timers: lost });
  await bed.start();
  first.abandon();
  const before = (await bed.records()).length;
  await bed.host({}, { tools: createParkTool() });
  await bed.time.advance(MINUTE);
  expect(await bed.records()).toHaveLength(before);
  await bed.time.advance(HOUR);
  expect((await bed.lines()).slice(-6)).toContain('turn_start 2');
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('a timer that was due while no host ran wakes its session when a host starts', async () => {
  const bed = testBed();
  const first = await asleep(bed, { for_ms: HOUR });
  first.abandon();
  await bed.time.advance(5 * HOUR);
  await bed.host({}, { tools: createParkTool() });
  await bed.time.advance(1_000);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  // It had fired, and the new host stored it again: the second firing changes nothing.
  expect((await bed.lines()).filter((line) => line === 'timer_fired suspension')).toHaveLength(1);
  expect(reminders(bed)).toEqual([expect.stringContaining('It slept for 5 h')]);
});

test('an obsolete timer leaves no record, not even on another host', async () => {
  const bed = testBed();
  const first = await asleep(bed, { for_ms: HOUR });
  await bed.send('resume');
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  first.abandon();
  const second = await bed.host();
  const before = (await bed.records()).length;
  await bed.time.advance(2 * HOUR);
  expect(await bed.records()).toHaveLength(before);
  expect(second.live).toBe(0);
  // It is removed: the next host does not see it again.
  expect(await bed.bus.createInbox().read(refOf(), 0, 0)).toEqual([]);
});

test('an obsolete timer does not load its session', async () => {
  const bed = testBed();
  const host = await asleep(bed, { for_ms: 3 * HOUR });
  await bed.send('resume');
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  await bed.time.advance(2 * HOUR);
  expect(host.live).toBe(0);
  const read = vi.spyOn(bed.journal, 'read');
  await bed.time.advance(2 * HOUR);
  expect(read).not.toHaveBeenCalled();
  expect(await bed.bus.createInbox().read(refOf(), 0, 0)).toEqual([]);
  // A command after it finds the session unchanged.
  await bed.send('prompt', 'go on');
  expect(read).toHaveBeenCalled();
  read.mockRestore();
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('a client cannot forge a timer: its command is rejected', async () => {
  const bed = testBed();
  await asleep(bed, { for_ms: HOUR });
  const [parked] = await bed.eventsOf('suspended');
  const id = await bed.send('timer', { effect_id: parked?.effect_id ?? '', due_at_ms: parked?.until_ms ?? 0 });
  expect(bed.told(id)).toEqual(['rejected internal_subject']);
  expect((await bed.lines()).at(-1)).toBe(`command_rejected internal_subject ${id}`);
  expect(await bed.eventsOf('resumed')).toEqual([]);
});

test('an invalid message of the timer store is dropped', () => {
  const timer = (payload: string) =>
    inputOfTimer({ ref: refOf(), verb: 'timer', seq: 1, storedAtMs: 0, isTimer: true, payload: Buffer.from(payload) });
  expect(timer('{"effect_id":"3-0","due_at_ms":5}')).toEqual({ type: 'timer', effect_id: '3-0', due_at_ms: 5 });
  expect(timer('{"effect_id":"3-0"}')).toBeNull();
  expect(timer('{"effect_id":"3-0","due_at_ms":5,"verb":"approve"}')).toBeNull();
  expect(timer('soon')).toBeNull();
});

test('a signal wakes a session that has left memory, and its data reaches the model', async () => {
  const bed = testBed();
  const host = await asleep(bed, { signal: 'deployed', for_ms: DAY });
  await bed.time.advance(2 * HOUR);
  expect(host.live).toBe(0);
  expect((await host.status(refOf()))?.suspended).toMatchObject({ signal: 'deployed', by_itself: true });
  await bed.send('signal', { name: 'deployed', data: { version: '1.4' } });
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  expect(reminders(bed)[0]).toContain('The signal "deployed" arrived with this data: {"version":"1.4"}');
});

test('the tool park rejects contradictory arguments, and the session stays awake', async () => {
  const bed = testBed();
  await asleep(bed, { until: '2030-01-02T00:00:00Z', for_ms: 5 });
  expect(await bed.lines()).toContain('call_ended c1 error');
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('a daemon wakes by its interval, also after it has left memory, and shows when it will', async () => {
  const bed = testBed();
  bed.models.answers = [say('on watch'), say('all is well'), say('still')];
  const host = await bed.host({ sweepEveryMs: MINUTE });
  await bed.start({ persona: { name: 'watch', daemon: { wake_interval_ms: HOUR } } });
  await bed.time.advance(30 * MINUTE);
  expect(host.live).toBe(0);
  expect((await host.status(refOf()))?.wakes_at).toBe('2030-01-01T01:00:00.000Z');
  await bed.time.advance(HOUR);
  expect(bed.models.requests).toHaveLength(2);
  expect(reminders(bed)).toEqual([expect.stringContaining('No input arrived for 1 h')]);
  expect((await host.status(refOf()))?.state).toEqual({ daemon_idle: 'waiting' });
});

test('a stopping host waits until its timers are in the store', async () => {
  const bed = testBed();
  const slow: Timers = {
    async schedule(...timer) {
      await bed.time.clock().sleep(3_000);
      await bed.bus.timers.schedule(...timer);
    },
  };
  bed.models.answers = [PARK({ for_ms: HOUR }), say('awake')];
  const host = await bed.host({}, { tools: createParkTool(), timers: slow });
  await bed.start();
  const stopped = host.stop();
  await bed.time.advance(4_000);
  await stopped;
  await bed.time.advance(HOUR);
  expect(await bed.bus.createInbox().read(refOf(), 0, 0)).toHaveLength(1);
});

test('a due timer that reaches a replaced host is not lost', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'slow')), ask(call('c2', 'park')), say('awake')];
  bed.tools = {
    slow: { run: taking(HOUR) },
    park: { run: async () => ({ ...answer('parked'), park: { for_ms: MINUTE } }) },
  };
  // Deliveries arrive at the first host, which still considers itself the owner during its call.
  await bed.host();
  await bed.start();
  await bed.rival();
  expect((await bed.eventsOf('suspended')).map(({ call_id }) => call_id)).toEqual(['c2']);
  await bed.time.advance(2 * MINUTE);
  expect(await bed.eventsOf('resumed')).toMatchObject([{ cause: 'timeout' }]);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('a timer is redelivered while the journal is unavailable', async () => {
  const bed = testBed();
  await asleep(bed, { for_ms: MINUTE });
  await bed.send('resume');
  const before = await bed.lines();
  expect(before.at(-1)).toBe('agent_end end_turn');
  const firstAfter = bed.journal.firstAfter.bind(bed.journal);
  let asked = 0;
  let isReadable = false;
  bed.journal.firstAfter = async (ref, fence) => {
    asked++;
    if (!isReadable) throw new Error('no leader');
    return firstAfter(ref, fence);
  };
  await bed.time.advance(2 * MINUTE);
  const inVain = asked;
  expect(inVain).toBeGreaterThan(1);
  isReadable = true;
  await bed.time.advance(10 * MINUTE);
  expect(asked).toBe(inVain + 1);
  expect(await bed.lines()).toEqual(before);
});
