/**
 * Forks: the past of a session under another id, the changes after the last copied record, and no mix of the two.
 */
import type { AppendResult, Journal, Meters } from '@coxswain/ports';
import {
  BOUNDS,
  type JournalRecord,
  type JsonObject,
  type SessionEvent,
  sessionRef,
  subjects,
} from '@coxswain/protocol';
import { SessionActor } from '@coxswain/turn';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { LoadLimit } from '../src/hosting/load-limit.ts';
import { type HostOptions, replayJournal, SessionRunner, sha256Hex } from '../src/mod.ts';
import { hook, returns, silent } from './fake-hooks.ts';
import { ask, call, say } from './fake-model.ts';
import { type FakeTool, taking } from './fake-tools.ts';
import { ASKING, refOf, type SendOptions, type TestBed, testBed } from './test-bed.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** Forks s1 (or `of`) at a record. @returns the command's id. */
function fork(
  bed: TestBed,
  n: number,
  changes?: JsonObject,
  { of = 's1', ...options }: SendOptions & { of?: string } = {},
) {
  const body = { fork: { session: of, n, ...(changes ? { changes } : {}) } };
  return bed.send('start', body, { session: 'f1', ...options });
}

/** The part of a record that a fork shares with its origin. */
function sharedPart({ input, events, ...record }: JournalRecord) {
  const { receipt_to: _, copied_from: __, ...own } = input as JournalRecord['input'] & JsonObject;
  const { n, at, state, effects_open, epoch } = record;
  return {
    ...{ n, at, state, effects_open, epoch },
    input: own,
    events: events
      .filter(({ type }) => type !== 'session_copied')
      .map((event) => ('session_id' in event ? { ...event, session_id: '' } : event)),
  };
}

const find = async (bed: TestBed, is: (event: SessionEvent) => boolean, session = 's1') =>
  (await bed.records(session)).find(({ events }) => events.some(is))?.n ?? expect.fail('no such record');

/** A session that has ended, with a call, a steer and an approval in it. */
async function ended(bed: TestBed, options: HostOptions = {}) {
  bed.tools = { read: {}, ask: {} };
  bed.models.answers = [ask(call('c1', 'read'), call('c2', 'ask')), say('done'), say('more')];
  const host = await bed.host(options);
  await bed.start({ permissions: ASKING });
  await bed.send('steer', 'think');
  await bed.send('approve', { call_id: 'c2', decision: 'allow' });
  return host;
}

const DIES = async (bed: TestBed, after: number, options: HostOptions = {}) => {
  const host = await ended(bed, options);
  const origin = await bed.records();
  let appends = 0;
  bed.journal.always = async (append, { ref }) => {
    if (ref.sessionId !== 'f1' || appends++ < after) return append();
    host.abandon();
    return { status: 'ambiguous', cause: 'dying' };
  };
  const id = await fork(bed, 7);
  bed.journal.always = 'none';
  expect((await bed.bytes('f1')).length).toBe(after);
  return { origin, id };
};

describe('a fork', () => {
  test('at any record has its origin’s records up to there, with its own hash chain, and then an owner', async () => {
    const bed = testBed();
    await ended(bed);
    // Its past keeps its own time.
    await bed.time.advance(60_000);
    const origin = await bed.records();
    for (let n = 1; n <= origin.length; n++) {
      const session = `at-${n}`;
      expect(bed.told(await fork(bed, n, undefined, { session })), session).toEqual(['accepted']);
      const records = await bed.records(session);
      expect(records.slice(0, n).map(sharedPart)).toEqual(origin.slice(0, n).map(sharedPart));
      // It has one inbox position: that of the command that requested it.
      expect(records.slice(0, n).flatMap((record) => (record.cursor ? [record.n] : []))).toEqual([1]);
      expect(records[n]?.input).toMatchObject({ type: 'owned', epoch: 2, after_copy: { session } });
      expect(records.every(({ session_id }) => session_id === session)).toBe(true);
      // It is complete: no other journal is read.
      const bytes = await bed.bytes(session);
      expect(await replayJournal(bytes, bed.bus.blobs)).toEqual({ records: bytes.length, sessionId: session });
    }
  });

  test('names its origin in its first record, and gets one receipt', async () => {
    const bed = testBed();
    await ended(bed);
    const id = await fork(bed, 4);
    const [first] = await bed.records('f1');
    const hash = sha256Hex((await bed.bytes())[3] as Uint8Array);
    expect(first?.events[0]).toEqual({
      type: 'session_copied',
      how: 'fork',
      session: 's1',
      up_to: 4,
      hash,
      command_id: id,
    });
    expect(bed.receipts.filter(({ session_id }) => session_id === 'f1')).toEqual([
      expect.objectContaining({ command_id: id, stage: 'accepted', n: 1 }),
    ]);
  });

  test('continues: model calls in progress start again, and the origin is unchanged', async () => {
    const bed = testBed();
    await ended(bed);
    const before = await bed.bytes();
    const asked = bed.models.requests.length;
    await fork(bed, 2);
    expect((await bed.lines('f1')).slice(-2)).toEqual(['call_started c1', 'call_ended c1 ok']);
    await bed.send('approve', { call_id: 'c2', decision: 'deny' }, { session: 'f1' });
    expect((await bed.lines('f1')).at(-1)).toBe('agent_end end_turn');
    expect(bed.models.requests.slice(asked).map(({ idempotencyKey }) => idempotencyKey)).toEqual([
      'default.f1.2-0',
      expect.stringMatching(/^default\.f1\./),
    ]);
    expect(await bed.bytes()).toEqual(before);
  });

  test('accepts commands like any session, and none of its origin’s', async () => {
    const bed = testBed();
    await ended(bed);
    const steer = await find(bed, ({ type }) => type === 'steering_received');
    const told = bed.receipts.length;
    await fork(bed, steer);
    // The steer is queued in the fork as in the origin; its sender gets no receipts of the fork.
    expect(bed.receipts.slice(told).map(({ session_id, stage }) => `${session_id} ${stage}`)).toEqual(['f1 accepted']);
    await bed.send('approve', { call_id: 'c2', decision: 'allow' }, { session: 'f1' });
    expect((await bed.lines('f1')).some((line) => line.includes('delivers steer-2'))).toBe(true);
    expect(bed.receipts.slice(told).filter(({ command_id }) => command_id === 'steer-2')).toEqual([]);
  });

  test('of a fork has its ancestors’ records, and names them', async () => {
    const bed = testBed();
    await ended(bed);
    const origin = await bed.records();
    await fork(bed, 3);
    await bed.send('approve', { call_id: 'c2', decision: 'deny' }, { session: 'f1' });
    const middle = await bed.records('f1');
    await fork(bed, middle.length, undefined, { of: 'f1', session: 'f2' });
    const records = await bed.records('f2');
    expect(records.slice(0, middle.length).map(sharedPart)).toEqual(middle.map(sharedPart));
    expect(records[0]?.events[0]).toMatchObject({ session: 'f1', before: [{ session: 's1', n: 3 }] });
    expect(records.slice(0, 3).map(sharedPart)).toEqual(origin.slice(0, 3).map(sharedPart));
    await bed.send('prompt', 'and now', { session: 'f2' });
    expect((await bed.lines('f2')).at(-1)).toBe('agent_end end_turn');
  });

  test('names the newest of many ancestors', async () => {
    const bed = testBed();
    await bed.host();
    await bed.start();
    const generations = BOUNDS.originsNamedMax + 2;
    for (let i = 1; i <= generations; i++)
      await fork(bed, 1, undefined, { of: i === 1 ? 's1' : `g${i - 1}`, session: `g${i}` });
    const [copied] = await bed.eventsOf('session_copied', `g${generations}`);
    const named = Array.from({ length: BOUNDS.originsNamedMax }, (_, i) => `g${generations - 2 - i}`);
    expect(copied?.session).toBe(`g${generations - 1}`);
    expect(copied?.before?.map(({ session }) => session)).toEqual([
      ...named.slice(0, -1),
      named.at(-1) === 'g0' ? 's1' : named.at(-1),
    ]);
  });

  test('of a suspended session is suspended, with a timer of its own', async () => {
    const bed = testBed();
    bed.models.answers = [say('one', { delayMs: 1_000 }), say('two')];
    bed.tools = { read: {} };
    await bed.host();
    await bed.start();
    await bed.send('followup', 'two');
    await bed.send('suspend', { for_ms: 60_000 });
    await bed.time.advance(2_000);
    const parked = await find(bed, ({ type }) => type === 'suspended');
    await fork(bed, parked);
    expect((await bed.records('f1')).at(-1)?.state).toEqual({ suspended: 'parked' });
    await bed.send('resume', {}, { session: 's1' });
    expect((await bed.records('f1')).at(-1)?.state).toEqual({ suspended: 'parked' });
    await bed.time.advance(60_000);
    expect((await bed.lines('f1')).filter((line) => line.startsWith('resumed'))).toEqual(['resumed timeout']);
  });

  test('does not count the time since its last copied record', async () => {
    const bed = testBed();
    bed.tools = { slow: { run: taking(1_000) } };
    bed.models.answers = [ask(call('c1', 'slow')), say('done')];
    await bed.host();
    await bed.start({ limits: { wall_time_ms: 10_000 } });
    await bed.time.advance(2_000);
    await bed.time.advance(3_600_000);
    await fork(bed, await find(bed, ({ type }) => type === 'call_ended'));
    expect((await bed.lines('f1')).slice(-1)).toEqual(['agent_end end_turn']);
  });
});

test('the work of a session counts once in the metrics and in the log, however often it is forked', async () => {
  const bed = testBed();
  const counted = new Map<string, number>();
  const meters: Meters = {
    add: (name, _labels, by = 1) => void counted.set(name, (counted.get(name) ?? 0) + by),
    observe: (name) => void counted.set(name, (counted.get(name) ?? 0) + 1),
    census: () => false,
  };
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host({}, { telemetry: { meters, spans: null } });
  await bed.start();
  const ofWork = () =>
    ['runs_total', 'turns_total', 'tokens_total', 'tool_seconds'].map((name) => counted.get(`coxswain_${name}`));
  const ended = () => bed.log.filter(({ message }) => message === 'a run has ended').length;
  const [before, commands] = [ofWork(), counted.get('coxswain_commands_total') ?? 0];
  await fork(bed, (await bed.records()).length);
  expect(before).toEqual([1, 2, expect.any(Number), 1]);
  expect(ofWork()).toEqual(before);
  expect(ended()).toBe(1);
  expect(counted.get('coxswain_commands_total')).toBe(commands + 1);
});

describe('calls that were in flight', () => {
  const SLOW: FakeTool = { run: taking(60_000) };

  async function calling(bed: TestBed, tool: FakeTool) {
    bed.tools = { slow: tool };
    bed.models.answers = [ask(call('c1', 'slow')), say('done')];
    await bed.host();
    await bed.start();
    return find(bed, ({ type }) => type === 'call_started');
  }

  test('are in doubt: they do not run again, and the model is informed', async () => {
    const bed = testBed();
    await fork(bed, await calling(bed, SLOW));
    expect(await bed.lines('f1')).toContain('call_ended c1 interrupted');
    expect(bed.toolSource.runs.map(({ key }) => key)).toEqual(['default.s1.3-0']);
  });

  test('run again under another key if the tool is idempotent', async () => {
    const bed = testBed();
    await fork(bed, await calling(bed, { ...SLOW, traits: { idempotent: true } }));
    expect(bed.toolSource.runs.map(({ key }) => key)).toEqual(['default.s1.3-0', 'default.f1.3-0']);
  });

  test('are in doubt, too, if the persona of the fork has no such tool', async () => {
    const bed = testBed();
    const n = await calling(bed, { ...SLOW, traits: { idempotent: true } });
    await fork(bed, n, { persona: { name: 'strict', prompt: 'Be strict.', tools: { allow: ['other'] } } });
    expect(await bed.lines('f1')).toContain('call_ended c1 interrupted');
  });

  test('belong to the origin if a worker has accepted them for it', async () => {
    const bed = testBed();
    const LATER: FakeTool = {
      traits: { long_running: true },
      run: async () => ({ status: 'accepted', result: { content: [], is_error: false } }),
    };
    await calling(bed, LATER);
    await fork(bed, await find(bed, ({ type }) => type === 'call_accepted'));
    expect(await bed.lines('f1')).toContain('call_ended c1 interrupted');
    expect(await bed.lines()).not.toContain('call_ended c1 interrupted');
  });
});

/** The journal of the bed, read in another way. */
function journalThatReads(bed: TestBed, read: Journal['read']): Journal {
  return {
    append: (ref, bytes, fence) => bed.journal.append(ref, bytes, fence),
    firstAfter: (ref, fence) => bed.journal.firstAfter(ref, fence),
    last: (ref) => bed.journal.last(ref),
    sessions: (tenant) => bed.journal.sessions(tenant),
    sessionsOf: (partition) => bed.journal.sessionsOf(partition),
    read,
  };
}

describe('with changes', () => {
  test('another prompt, from the first record on', async () => {
    const bed = testBed();
    await ended(bed);
    const asked = bed.models.requests.length;
    await fork(bed, 1, { prompt: 'good evening' });
    expect((await bed.eventsOf('prompt_received', 'f1'))[0]?.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'good evening' }] },
    ]);
    expect(JSON.stringify(bed.models.requests[asked]?.messages)).toContain('good evening');
  });

  test('another prompt in place of one with messages', async () => {
    const bed = testBed();
    await ended(bed);
    await bed.send('prompt', { messages: [{ role: 'user', content: [{ type: 'text', text: 'a first' }] }] });
    const n =
      (await bed.records()).findLastIndex(({ events }) => events.some((one) => one.type === 'prompt_received')) + 1;
    await fork(bed, n, { prompt: 'good evening' });
    const input = (await bed.records('f1'))[n - 1]?.input;
    expect(input).toMatchObject({ verb: 'prompt', body: { body: 'good evening' } });
    expect(input).not.toHaveProperty('body.messages');
  });

  test('another steer', async () => {
    const bed = testBed();
    await ended(bed);
    await fork(bed, await find(bed, ({ type }) => type === 'steering_received'), { prompt: 'do not think' });
    expect((await bed.eventsOf('steering_received', 'f1'))[0]?.body).toBe('do not think');
  });

  test('a next prompt, if the session has ended: in the record of its claim', async () => {
    const bed = testBed();
    await ended(bed);
    const n = (await bed.records()).length;
    const id = await fork(bed, n, { prompt: 'and in French' });
    const taken = (await bed.records('f1'))[n];
    expect(taken?.events.map(({ type }) => type)).toEqual(['owned', 'prompt_received']);
    expect(taken?.events[1]).toMatchObject({ command_id: id, run: 2 });
    expect((await bed.lines('f1')).at(-1)).toBe('agent_end end_turn');
    // One command is both, so a repetition changes nothing.
    await fork(bed, n, { prompt: 'and in French' }, { id });
    expect(bed.told(id)).toEqual(['accepted', 'accepted']);
    expect((await bed.eventsOf('prompt_received', 'f1')).length).toBe(2);
  });

  test('another model in the middle of a run: resolved before the run continues', async () => {
    const bed = testBed();
    await ended(bed);
    const n = await find(bed, ({ type }) => type === 'call_started');
    const asked = bed.models.requests.length;
    await fork(bed, n, { model: 'fake/other' });
    await bed.send('approve', { call_id: 'c2', decision: 'allow' }, { session: 'f1' });
    const lines = await bed.lines('f1');
    expect(lines.slice(lines.indexOf('owned 2 after copy'))).toEqual([
      'owned 2 after copy',
      'settings_changed model reprovisions',
      'persona_changed',
      'reprovisioned',
      'call_ended c1 interrupted',
      'approval_decided c2 allow',
      'control_outcome approve allowed c2',
      'call_started c2',
      'call_ended c2 ok',
      'turn_end 1',
      'turn_start 2',
      'message_complete "done"',
      'turn_end 2',
      'tools_closed',
      'agent_end end_turn',
    ]);
    expect(bed.models.requests.slice(asked).map(({ model }) => model.name)).toEqual(['fake/other']);
    expect((await bed.records('f1')).at(-1)?.events.some(({ type }) => type === 'agent_end')).toBe(true);
  });

  test('another persona for the next run of a session that has ended', async () => {
    const bed = testBed();
    const host = await ended(bed);
    const persona = { name: 'poet', prompt: 'You are a poet.' };
    await fork(bed, (await bed.records()).length, { persona, prompt: 'again' });
    expect(bed.models.requests.at(-1)?.system).toBe('You are a poet.');
    expect((await host.status(refOf('f1')))?.persona).toBe('poet');
    expect((await host.status(refOf()))?.persona).toBe('assistant');
  });

  test('an unavailable model ends the fork’s run with an error', async () => {
    const bed = testBed();
    await ended(bed);
    const n = await find(bed, ({ type }) => type === 'call_started');
    bed.models.missing = { code: 'provider_unknown', message: 'nobody serves it' };
    await fork(bed, n, { model: 'other/model' });
    expect((await bed.lines('f1')).slice(-1)).toEqual(['agent_end error']);
    expect(await bed.lines('f1')).toContain('run_failed provisioning provider_unknown');
  });

  test('another result', async () => {
    const bed = testBed();
    await ended(bed);
    const n = await find(bed, (event) => event.type === 'call_ended' && event.call_id === 'c1');
    await fork(bed, n, { result: { text: 'no such file', is_error: true } });
    expect((await bed.eventsOf('call_ended', 'f1'))[0]).toMatchObject({
      call_id: 'c1',
      status: 'error',
      result: { content: [{ type: 'text', text: 'no such file' }], is_error: true },
    });
  });
});

/** A persona whose rules deny a tool. */
const denying = (tool: string): JsonObject => ({
  name: 'strict',
  prompt: 'Be strict.',
  permissions: { rules: [{ tool, action: 'deny' }] },
});

describe('at a veto', () => {
  async function vetoed(bed: TestBed) {
    bed.tools = { exec: { schema: { type: 'object', required: ['command'] } } };
    bed.hooks.registrations = [hook('PreToolUse', 'policy'), hook('PreToolUse', 'audit')];
    bed.hooks.handlers = { policy: returns({ deny: 'not on a Friday' }) };
    bed.models.answers = [ask(call('c1', 'exec', { command: 'ls' })), say('done')];
    await bed.host();
    await bed.start();
    expect((await bed.eventsOf('call_ended'))[0]?.status).toBe('denied');
    return find(bed, ({ type }) => type === 'hook_vetoed');
  }

  test('the opposite verdict lets the call run', async () => {
    const bed = testBed();
    const n = await vetoed(bed);
    await fork(bed, n, { verdicts: { policy: true, audit: true } });
    expect(await bed.lines('f1')).toContain('call_ended c1 ok');
    expect(bed.toolSource.runs.map(({ key }) => key.split('.')[1])).toEqual(['f1']);
    // No model was called again.
    expect(bed.hooks.asked).toHaveLength(1);
  });

  test('a hook of the persona is named with the persona', async () => {
    const bed = testBed();
    bed.tools = { exec: {} };
    bed.models.answers = [ask(call('c1', 'exec')), say('done')];
    await bed.host();
    const hooks = [
      { event: 'PreToolUse', id: 'policy', deny: 'not on a Friday' },
      { event: 'PreToolUse', id: 'audit', deny: 'never' },
    ];
    await bed.start({ persona: { name: 'writer', prompt: 'You write.', hooks } });
    const n = await find(bed, ({ type }) => type === 'hook_vetoed');
    const id = await fork(bed, n, { verdicts: { 'writer:policy': true } });
    expect(bed.receipts.find(({ command_id }) => command_id === id)).toMatchObject({
      code: 'fork_change_misfit',
      field: 'fork.changes.verdicts.writer:audit',
    });
    await fork(bed, n, { verdicts: { 'writer:policy': true, 'writer:audit': true } });
    expect(await bed.lines('f1')).toContain('call_ended c1 ok');
  });

  test('the present hook table applies to the fork, not the origin’s', async () => {
    const bed = testBed();
    const n = await vetoed(bed);
    bed.hooks.registrations = [hook('post_turn', 'new')];
    bed.hooks.handlers = {};
    await fork(bed, n, { verdicts: { policy: true, audit: true } });
    expect((await bed.eventsOf('hooks_changed', 'f1')).at(-1)).toMatchObject({ table: [{ id: 'new' }] });
    expect(new Set(bed.hooks.asked.slice(1).map(({ registration }) => registration.id))).toEqual(new Set(['new']));
  });

  test('a refusing verdict ends the chain, although later hooks had answered', async () => {
    const bed = testBed();
    bed.hooks.registrations = [hook('PreToolUse', 'one'), hook('PreToolUse', 'two')];
    bed.models.answers = [ask(call('c1', 'read')), say('done')];
    await bed.host();
    await bed.start();
    const n = await find(bed, ({ type }) => type === 'hook_returned');
    await fork(bed, n, { verdicts: { one: { deny: 'not this time' } } });
    expect((await bed.eventsOf('hook_returned', 'f1')).map(({ hook, not_run }) => [hook, not_run])).toEqual([
      ['one', undefined],
      ['two', true],
    ]);
    expect(await bed.lines('f1')).toContain('call_ended c1 denied by hook');
    expect(bed.toolSource.runs).toHaveLength(1);
  });

  test('a call that waits for an approval is denied if the rules of another persona deny it', async () => {
    const bed = testBed();
    bed.tools = { ask: {} };
    bed.models.answers = [ask(call('c1', 'ask')), say('done')];
    await bed.host();
    await bed.start({ permissions: ASKING });
    await fork(bed, (await bed.records()).length, { persona: denying('ask') });
    const id = await bed.send('approve', { call_id: 'c1', decision: 'allow' }, { session: 'f1' });
    expect(bed.told(id)).toEqual(['rejected not_pending']);
    expect(await bed.lines('f1')).toContain('call_ended c1 denied by rule');
    expect(bed.toolSource.runs).toEqual([]);
  });

  test('the same applies to a call that was allowed and waits for its turn', async () => {
    const bed = testBed();
    bed.tools = { ask: { traits: { sequential: true } } };
    bed.models.answers = [ask(call('c1', 'ask'), call('c2', 'ask')), say('done')];
    await bed.host();
    await bed.start({ permissions: ASKING });
    // It waits for the decision about the first call.
    await bed.send('approve', { call_id: 'c2', decision: 'allow' });
    await fork(bed, (await bed.records()).length, { persona: denying('ask') });
    const ends = (await bed.lines('f1')).filter((line) => line.startsWith('call_ended'));
    expect(ends).toEqual(['call_ended c1 denied by rule', 'call_ended c2 denied by rule']);
    expect(bed.toolSource.runs).toEqual([]);
  });

  test('the same applies to a call in flight, which may have taken effect', async () => {
    const bed = testBed();
    bed.tools = { read: { traits: { idempotent: true }, run: taking(60_000) } };
    bed.models.answers = [ask(call('c1', 'read')), say('done')];
    await bed.host();
    await bed.start();
    await fork(bed, await find(bed, ({ type }) => type === 'call_started'), { persona: denying('read') });
    expect(await bed.lines('f1')).toContain('call_ended c1 interrupted');
    expect(bed.toolSource.runs.map(({ key }) => key)).toEqual(['default.s1.3-0']);
  });

  test('the same applies to a call that only the changed verdict lets run', async () => {
    const bed = testBed();
    const n = await vetoed(bed);
    await fork(bed, n, { verdicts: { policy: true, audit: true }, persona: denying('exec') });
    expect(await bed.lines('f1')).toContain('call_ended c1 denied by rule');
    expect(bed.toolSource.runs).toEqual([]);
  });

  test('a failure that did not refuse when the hooks were asked keeps the denial of a later hook', async () => {
    const bed = testBed();
    const registered = (on_error: 'fail_open' | 'fail_closed') => [
      hook('PreToolUse', 'one'),
      hook('PreToolUse', 'two', { on_error, timeout_ms: 5_000 }),
      hook('PreToolUse', 'three'),
    ];
    bed.hooks.registrations = registered('fail_open');
    bed.hooks.handlers = { two: silent, three: returns({ deny: 'never' }) };
    bed.models.answers = [ask(call('c1', 'read')), say('done')];
    await bed.host();
    await bed.start();
    bed.hooks.change(registered('fail_closed'));
    await bed.time.advance(10_000);
    const n = await find(bed, ({ type }) => type === 'hook_returned');
    expect(await bed.lines()).toContain('call_ended c1 denied by hook');
    await fork(bed, n, { verdicts: { one: true } });
    expect(await bed.lines('f1')).toContain('call_ended c1 denied by hook');
    expect(bed.toolSource.runs).toEqual([]);
  });

  test('the answer of a hook that disappeared while it was asked cannot be changed', async () => {
    const bed = testBed();
    bed.tools = { exec: {} };
    bed.hooks.registrations = [hook('PreToolUse', 'policy')];
    bed.hooks.handlers = { policy: silent };
    bed.models.answers = [ask(call('c1', 'exec')), say('done')];
    await bed.host();
    await bed.start();
    bed.hooks.change([]);
    await bed.time.advance(10_000);
    const n = await find(bed, ({ type }) => type === 'hook_returned');
    const id = await fork(bed, n, { verdicts: { policy: true } });
    expect(bed.receipts.find(({ command_id }) => command_id === id)).toMatchObject({
      stage: 'rejected',
      code: 'fork_change_misfit',
      field: 'fork.changes.verdicts.policy',
      message: expect.stringMatching(/policy was no longer registered/),
    });
  });

  test('a rewrite is validated like a hook’s own', async () => {
    const bed = testBed();
    const n = await vetoed(bed);
    await fork(bed, n, { verdicts: { '*': true, policy: { args: { command: 'pwd' } } } });
    expect(bed.toolSource.runs[0]?.args).toEqual({ command: 'pwd' });
    await fork(bed, n, { verdicts: { '*': true, policy: { args: { cmd: 'pwd' } } } }, { session: 'f2' });
    expect(bed.toolSource.runs).toHaveLength(1);
    expect(await bed.eventsOf('call_ended', 'f2')).toMatchObject([
      { status: 'error', result: { detail: { code: 'invalid_call_arguments' } } },
    ]);
  });

  test.each([
    [{ verdicts: { policy: true } }, 'fork.changes.verdicts.audit', /audit was not asked/],
    [{ verdicts: { stranger: true } }, 'fork.changes.verdicts.stranger', /this hook was not asked at this record/],
    [{ verdicts: { policy: { dney: 'x' } } }, 'fork.changes.verdicts.policy', /dney/],
    [{ verdicts: { policy: { messages: [] } } }, 'fork.changes.verdicts.policy', /not allowed here/],
    [{ result: 'x' }, 'fork.changes.result', /the hook returns at PreToolUse \(policy, audit\)/],
    [{ prompt: 'x' }, 'fork.changes.prompt', /the hook returns at PreToolUse/],
  ])('what does not fit is refused, naming field and record: %j', async (changes, field, message) => {
    const bed = testBed();
    const id = await fork(bed, await vetoed(bed), changes as JsonObject);
    const receipt = bed.receipts.find(({ command_id }) => command_id === id);
    expect(receipt).toMatchObject({ stage: 'rejected', code: 'fork_change_misfit', field });
    expect(receipt?.message).toMatch(message);
    expect(await bed.bytes('f1')).toEqual([]);
  });
});

describe('is refused', () => {
  test.each([
    [{ session: 'nobody', n: 1 }, 'fork_origin_not_found', 'fork.session'],
    [{ session: 's1', n: 99 }, 'fork_record_not_found', 'fork.n'],
    [{ session: 's1', n: BOUNDS.forkRecordsMax + 1 }, 'fork_too_long', 'fork.n'],
    [{ session: 's1', n: 0 }, 'invalid_field', 'fork.n'],
    [{ session: 's1' }, 'invalid_field', 'fork.n'],
    [{ session: 'other.s1', n: 1 }, 'invalid_field', 'fork.session'],
    [{ session: 's1', n: 1, at: 1 }, 'unknown_field', 'fork.at'],
    [{ session: 's1', n: 1, changes: {} }, 'invalid_field', 'fork.changes'],
    [{ session: 's1', n: 1, changes: { verdict: true } }, 'unknown_field', 'fork.changes.verdict'],
    [{ session: 's1', n: 1, changes: { prompt: ' ' } }, 'invalid_field', 'fork.changes.prompt'],
    [{ session: 's1', n: 1, changes: { prompt: 'x', result: 'y' } }, 'invalid_field', 'fork.changes.result'],
    [{ session: 's1', n: 1, changes: { model: 'nameless' } }, 'invalid_field', 'fork.changes.model'],
    [
      { session: 's1', n: 1, changes: { persona: { name: 'p', hooks: [{ event: 'post_turns', handler: 'x' }] } } },
      'invalid_field',
      'fork.changes.persona.hooks.0.event',
    ],
    [
      { session: 's1', n: 1, changes: { persona: { name: 'p', skills: ['x'] } } },
      'invalid_field',
      'fork.changes.persona.skills.0',
    ],
  ])('%j', async (forked, code, field) => {
    const bed = testBed();
    await ended(bed);
    const id = await bed.send('start', { fork: forked as JsonObject }, { session: 'f1' });
    expect(bed.receipts.find(({ command_id }) => command_id === id)).toMatchObject({ stage: 'rejected', code, field });
    expect(await bed.bytes('f1')).toEqual([]);
  });

  test('if it sets members that a fork has from its origin', async () => {
    const bed = testBed();
    await ended(bed);
    const id = await bed.send('start', { fork: { session: 's1', n: 1 }, model: 'fake/other' }, { session: 'f1' });
    const receipt = bed.receipts.find(({ command_id }) => command_id === id);
    expect(receipt).toMatchObject({ code: 'invalid_field', field: 'model' });
    expect(receipt?.message).toContain('put it into fork.changes');
  });

  test('of another tenant’s session, which is not found', async () => {
    const bed = testBed();
    await bed.host();
    const start = Buffer.from(JSON.stringify({ prompt: 'hello', model: 'fake/model' }));
    bed.bus.publish(subjects.command(sessionRef('theirs', 'others'), 'start'), start, {});
    await bed.time.settle();
    expect(await bed.bus.journal.last(sessionRef('theirs', 'others'))).not.toBe(null);
    expect(bed.told(await fork(bed, 1, undefined, { of: 'theirs' }))).toEqual(['rejected fork_origin_not_found']);
  });

  test('under the id of an existing session, also its origin’s', async () => {
    const bed = testBed();
    await ended(bed);
    expect(bed.told(await fork(bed, 1, undefined, { session: 's1' }))).toEqual(['rejected session_exists']);
    await fork(bed, 3);
    expect(bed.told(await fork(bed, 3))).toEqual(['rejected session_busy']);
  });

  test('under the id of a command of its origin', async () => {
    const bed = testBed();
    await ended(bed);
    expect(bed.told(await fork(bed, 8, undefined, { id: 'steer-2' })).at(-1)).toBe('rejected command_id_taken');
    expect(await bed.bytes('f1')).toEqual([]);
  });

  test('of a journal that does not replay', async () => {
    const bed = testBed();
    await ended(bed);
    const [first, second] = await bed.bytes();
    const forged = Buffer.from(
      Buffer.from(second as Uint8Array)
        .toString('utf8')
        .replace('"state":', '"state" :'),
    );
    const { fence = 0 } = (await bed.bus.journal.append(refOf('x1'), first as Uint8Array, 0)) as { fence: number };
    await bed.bus.journal.append(refOf('x1'), forged, fence);
    const id = await fork(bed, 2, undefined, { of: 'x1' });
    expect(bed.receipts.find(({ command_id }) => command_id === id)).toMatchObject({
      code: 'replay_diverged',
      field: 'fork.session',
    });
    bed.forget('x1');
  });
});

describe('a crash', () => {
  test.each([0, 1, 3, 6, 7])('after %i records of the copy: the next host continues it', async (after) => {
    const bed = testBed();
    const { origin, id } = await DIES(bed, after);
    await bed.host();
    await bed.time.settle();
    const records = await bed.records('f1');
    expect(records.slice(0, 7).map(sharedPart)).toEqual(origin.slice(0, 7).map(sharedPart));
    expect(records.filter(({ input }) => input.type === 'owned').map(({ n }) => n)).toEqual([8]);
    await fork(bed, 7, undefined, { id });
    expect(bed.told(id).every((stage) => stage === 'accepted')).toBe(true);
    await bed.send('approve', { call_id: 'c2', decision: 'allow' }, { session: 'f1' });
    expect((await bed.lines('f1')).at(-1)).toMatch(/agent_end|control_outcome/);
  });

  test('the same if the next host starts from a snapshot of the unfinished copy', async () => {
    const bed = testBed();
    await DIES(bed, 3, { snapshotEvery: 1 });
    const snapshot = Buffer.from((await bed.bus.snapshots.get(refOf('f1'))) as Uint8Array).toString();
    expect(JSON.parse(snapshot)).toMatchObject({ n: 3, copy: { how: 'fork', session: 's1', n: 7 } });
    await bed.host();
    await bed.time.settle();
    const records = await bed.records('f1');
    expect(records.filter(({ input }) => input.type === 'owned').map(({ n }) => n)).toEqual([8]);
  });

  /** A runner of the fork, as one of several hosts. */
  function runnerOf(bed: TestBed, host: string, left: string[], journal: Journal = bed.journal): SessionRunner {
    const options = {
      host,
      isOwnRecord: (attempt: string) => attempt === host,
      snapshotEvery: 200,
      storeNote: async () => undefined,
      storeNoteAgain: () => undefined,
      loads: new LoadLimit(bed.time.clock(host)),
      transcripts: new LoadLimit(bed.time.clock(host)),
      traces: new LoadLimit(bed.time.clock(host)),
      mayStartEffects: () => true,
    };
    return new SessionRunner(bed.ports({ journal }), refOf('f1'), options, ({ reason }) => left.push(reason));
  }

  test('and two hosts that continue it at the same time leave one journal and one owner', async () => {
    const bed = testBed();
    await DIES(bed, 3);
    const left: string[] = [];
    const runners = ['a', 'b'].map((host) => runnerOf(bed, host, left));
    for (const runner of runners) runner.wake();
    await bed.time.settle();
    expect(left).toEqual(['foreign_writer']);
    for (const runner of runners) runner.leave();
    const records = await bed.records('f1');
    expect(records.filter(({ input }) => input.type === 'owned').map(({ n }) => n)).toEqual([8]);
  });

  test('and a host that fails to continue it leaves the owner that has finished it alone', async () => {
    const bed = testBed();
    await DIES(bed, 3);
    const late = journalThatReads(bed, async function* (ref, fence) {
      // When the records of the origin arrive, they are purged.
      if (ref.sessionId === 's1') return void (await bed.time.clock().sleep(1_000));
      yield* bed.journal.read(ref, fence);
    });
    const left: string[] = [];
    const runners = [runnerOf(bed, 'a', left, late), runnerOf(bed, 'b', left)];
    for (const runner of runners) runner.wake();
    await bed.time.advance(2_000);
    expect(left).toEqual(['foreign_writer']);
    for (const runner of runners) runner.leave();
    const lines = await bed.lines('f1', 8);
    expect(lines[0]).toBe('owned 2 after copy');
    expect(lines.filter((line) => /^(owned|copy_failed|run_failed)/.test(line))).toHaveLength(1);
  });

  test('before any other command is accepted, also one that came meanwhile', async () => {
    const bed = testBed();
    await DIES(bed, 3);
    const id = await bed.send('steer', 'quick', { session: 'f1' });
    await bed.host();
    await bed.time.settle();
    const steer = (await bed.records('f1')).find(({ input }) => input.type === 'command' && input.command_id === id);
    expect(steer?.n).toBeGreaterThan(8);
  });

  test('whose origin was deleted meanwhile ends the fork’s run with a code', async () => {
    const bed = testBed();
    await DIES(bed, 4);
    bed.forget('s1');
    await bed.host();
    await bed.time.settle();
    const lines = await bed.lines('f1', 5);
    expect(lines.slice(0, 3)).toEqual([
      'owned 2 after copy',
      'copy_failed 4 fork_origin_gone',
      'run_failed session fork_origin_gone',
    ]);
    expect(lines.at(-1)).toBe('agent_end error');
    await bed.send('prompt', 'go on', { session: 'f1' });
    expect((await bed.lines('f1')).at(-1)).toBe('agent_end end_turn');
  });

  test('whose origin changed meanwhile ends it as well: a copy must not mix two origins', async () => {
    const bed = testBed();
    await DIES(bed, 4);
    const journal = journalThatReads(bed, async function* (ref, fence) {
      for await (const record of bed.journal.read(ref, fence))
        yield ref.sessionId === 's1' ? { ...record, bytes: bySomebodyElse(record.bytes) } : record;
    });
    await bed.host({}, { journal });
    await bed.time.settle();
    expect(await bed.lines('f1', 5)).toContain('copy_failed 4 fork_origin_gone');
    expect((await bed.lines('f1')).at(-1)).toBe('agent_end error');
  });

  function bySomebodyElse(bytes: Uint8Array): Uint8Array {
    return Buffer.from(
      Buffer.from(bytes)
        .toString('utf8')
        .replace(/"attempt":"[^"]*"/, '"attempt":"somebody"'),
    );
  }

  test('an internal exception during the copy ends it with a code, too', async () => {
    const bed = testBed();
    await ended(bed);
    const step = SessionActor.prototype.step;
    let copying = 0;
    vi.spyOn(SessionActor.prototype, 'step').mockImplementation(function (this: SessionActor, input, n, atMs) {
      if (this.state.context.session_id === 'f1' && n === 4 && copying++ === 0) throw new Error('an invariant broke');
      return step.call(this, input, n, atMs);
    });
    await fork(bed, 6);
    expect(await bed.lines('f1')).toContain('copy_failed 3 session_failed');
    expect((await bed.lines('f1')).at(-1)).toBe('agent_end error');
  });

  test('an outage of the journal only delays it', async () => {
    const bed = testBed();
    await ended(bed);
    bed.journal.unreadable = new Error('no leader');
    await fork(bed, 3);
    expect(await bed.bytes('f1')).toEqual([]);
    bed.journal.unreadable = null;
    await bed.time.advance(60_000);
    expect((await bed.records('f1')).length).toBeGreaterThan(3);
  });
});

describe('whose first record is stored late, after its origin was deleted', () => {
  /** The first append of f1 has no answer until the host abandons it; the origin is deleted meanwhile. */
  async function storedLate(bed: TestBed): Promise<string> {
    await ended(bed);
    let first: (() => Promise<AppendResult>) | null = null;
    bed.journal.always = async (append, { ref }) => {
      if (ref.sessionId !== 'f1') return append();
      first ??= append;
      return { status: 'ambiguous', cause: 'no answer' };
    };
    const id = await fork(bed, 3);
    await bed.send('delete', {});
    const isGivenUp = () =>
      bed.log.some(({ fields }) => (fields as { session_id?: string }).session_id === 'f1' && 'reason' in fields);
    for (let waited = 0; waited < 40 && !isGivenUp(); waited++) await bed.time.advance(5_000);
    expect(isGivenUp()).toBe(true);
    bed.journal.always = async (append, { ref }) => {
      const late = ref.sessionId === 'f1' ? first : null;
      first = null;
      await late?.();
      return append();
    };
    return id;
  }

  test('is complete if the records still exist', async () => {
    const bed = testBed();
    const id = await storedLate(bed);
    await bed.time.advance(60_000);
    expect(bed.told(id)).not.toContain('rejected session_deleted');
    expect(await bed.lines('f1')).toContain('owned 2 after copy');
  });

  test('ends with a code if the records are gone', async () => {
    const bed = testBed();
    const id = await storedLate(bed);
    bed.forget('s1');
    await bed.time.advance(60_000);
    expect(bed.told(id)).not.toContain('rejected session_deleted');
    expect(await bed.lines('f1')).toContain('copy_failed 1 fork_origin_gone');
    expect((await bed.lines('f1')).at(-1)).toBe('agent_end error');
  });
});

test('a long copy does not block other sessions', async () => {
  const bed = testBed();
  await ended(bed);
  for (let i = 0; i < 100; i++) await bed.send('followup', 'later');
  const n = (await bed.records()).length;
  const order: string[] = [];
  bed.journal.always = (append, { ref }) => {
    order.push(ref.sessionId);
    return append();
  };
  await Promise.all([fork(bed, n), bed.start({}, { session: 's2' })]);
  // It was second, and its run ends before the copy.
  expect(order.filter((session) => session === 'f1').length).toBeGreaterThan(100);
  expect(order.lastIndexOf('s2')).toBeLessThan(order.lastIndexOf('f1') - 50);
});

describe('the origin’s journal is read', () => {
  /** The start position of each read of the origin. */
  const readings = (bed: TestBed) => {
    const from: (number | undefined)[] = [];
    const read = bed.journal.read.bind(bed.journal);
    vi.spyOn(bed.journal, 'read').mockImplementation((ref, fence) => {
      if (ref.sessionId === 's1') from.push(fence);
      return read(ref, fence);
    });
    return from;
  };

  test('once from its start: the checked records are the copied ones', async () => {
    const bed = testBed();
    await ended(bed);
    const from = readings(bed);
    await fork(bed, 6);
    expect(from.filter((fence) => !fence)).toHaveLength(1);
  });

  test('once also when an unfinished copy continues', async () => {
    const bed = testBed();
    await DIES(bed, 4);
    const from = readings(bed);
    await bed.host();
    await bed.time.settle();
    expect(from.filter((fence) => !fence)).toHaveLength(1);
    expect((await bed.lines('f1')).some((line) => line.startsWith('copy_failed'))).toBe(false);
  });
});

test('a large field is copied by its hash', async () => {
  const bed = testBed();
  await bed.host();
  await bed.start({ prompt: 'word '.repeat(30_000) });
  await fork(bed, (await bed.records()).length);
  expect((await bed.records('f1'))[0]?.events[1]).toMatchObject({ type: 'prompt_received' });
  expect(JSON.stringify((await bed.records('f1'))[0]).length).toBeGreaterThan(150_000);
});
