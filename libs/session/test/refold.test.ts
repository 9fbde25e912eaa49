/**
 * Broken invariants: discard the machine, fold the journal again, end the run as failed. The host continues. RUNNER-9.
 */
import type { StoredRecord, Toolset } from '@coxswain/ports';
import type { Input } from '@coxswain/protocol';
import { SessionActor } from '@coxswain/turn';
import { afterEach, expect, test, vi } from 'vitest';
import { buildRecord, sealRecord } from '../src/journal/append-record.ts';
import { loadSession } from '../src/journal/load-session.ts';
import { ask, call, say } from './fake-model.ts';
import { answer, taking } from './fake-tools.ts';
import { ALLOW, ASKING, recordOf, refOf, testBed } from './test-bed.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** Breaks the machine on such an input, this number of times. */
function breakOn(
  matches: (input: { readonly type: string; readonly command_id?: string }) => boolean,
  times = 1,
): void {
  const step = SessionActor.prototype.step;
  let left = times;
  vi.spyOn(SessionActor.prototype, 'step').mockImplementation(function (this: SessionActor, input, n, atMs) {
    const done = step.call(this, input, n, atMs);
    // After the step: the machine is ahead of the journal, and must be discarded.
    if (left > 0 && matches(input as { type: string })) {
      left--;
      throw new Error('an invariant broke');
    }
    return done;
  });
}

test('a worker that throws ends the run as failed: the call gets one result, and tools are closed', async () => {
  const bed = testBed();
  bed.tools = {
    broken: {
      run: () => {
        throw new Error('the adapter broke its contract');
      },
    },
  };
  bed.models.answers = [ask(call('c1', 'broken')), say('done')];
  const host = await bed.host();
  await bed.start();
  expect((await bed.lines()).slice(-5)).toEqual([
    'run_failed session session_failed',
    'call_ended c1 cancelled',
    'turn_end 1',
    'tools_closed',
    'agent_end error',
  ]);
  expect((await host.status(refOf()))?.error).toEqual({
    code: 'session_failed',
    message: 'the adapter broke its contract',
  });
  expect(bed.toolSource.openNow).toBe(0);
});

test('siblings of a call whose worker throws are stopped, with one result each', async () => {
  const bed = testBed();
  bed.tools = {
    slow: { run: taking(10_000) },
    broken: {
      run: async (_call, _signal, clock) => {
        await clock.sleep(100);
        throw new Error('broke');
      },
    },
  };
  bed.models.answers = [ask(call('c1', 'slow'), call('c2', 'broken'))];
  await bed.host();
  await bed.start();
  await bed.time.advance(1_000);
  expect((await bed.eventsOf('call_ended')).map(({ call_id, status }) => `${call_id} ${status}`).sort()).toEqual([
    'c1 cancelled',
    'c2 cancelled',
  ]);
  expect(bed.toolSource.runs[0]).toMatchObject({ callId: 'c1', aborted: true });
});

test('RUNNER-9: an outcome that breaks the machine once is not used again: a plain stop replaces it', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host();
  breakOn((input) => input.type === 'call_outcome');
  await bed.start();
  expect(bed.toolSource.runs).toHaveLength(1);
  expect((await bed.lines()).slice(-5)).toEqual([
    'run_failed session session_failed',
    'call_ended c1 cancelled',
    'turn_end 1',
    'tools_closed',
    'agent_end error',
  ]);
});

test('RUNNER-9: the outcomes that wait behind it are offered again', async () => {
  const bed = testBed();
  bed.tools = { a: {}, b: {} };
  bed.models.answers = [ask(call('c1', 'a'), call('c2', 'b')), say('done')];
  await bed.host();
  breakOn((input) => input.type === 'call_outcome');
  await bed.start();
  await bed.time.advance(100);
  expect(bed.toolSource.runs).toHaveLength(2);
  const ended = await bed.eventsOf('call_ended');
  expect(ended.map(({ call_id }) => call_id).sort()).toEqual(['c1', 'c2']);
  // The run is over, but the second tool's result is recorded.
  expect(JSON.stringify(ended.find(({ call_id }) => call_id === 'c2')?.result)).toContain('b ran');
});

test('RUNNER-8: a machine that cannot take in even a stop is left, and tried again with back-off, not in a loop', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host();
  breakOn((input) => input.type === 'call_outcome', 1_000);
  await bed.start();
  await bed.time.advance(100);
  const records = (await bed.records()).length;
  expect(records).toBeLessThan(8);
  expect(bed.log.some((line) => 'reason' in line.fields && line.fields.reason === 'unrecoverable')).toBe(true);
  vi.restoreAllMocks();
  await bed.time.advance(60_000);
  expect((await bed.lines()).at(-1)).toBe('agent_end error');
  expect(bed.toolSource.runs).toHaveLength(1);
});

test('a command that breaks the machine is answered and recorded, ends the run, and is not redelivered', async () => {
  const bed = testBed();
  bed.models.answers = [say('done', { delayMs: 60_000 })];
  await bed.host();
  await bed.start();
  breakOn((input) => input.command_id === 'poison');
  await bed.send('steer', 'boom', { id: 'poison' });
  await bed.time.advance(30_000);
  expect(bed.told('poison')).toEqual(['rejected session_failed']);
  const lines = await bed.lines();
  expect(lines.filter((line) => line.includes('poison'))).toEqual(['command_rejected session_failed poison']);
  expect(lines.at(-1)).toBe('agent_end error');
});

test('a command that breaks the machine before a session exists stores nothing', async () => {
  const bed = testBed();
  await bed.host();
  breakOn((input) => input.command_id === 'poison');
  await bed.start({}, { id: 'poison' });
  expect(bed.told('poison')).toEqual(['rejected session_failed']);
  expect(await bed.bytes()).toEqual([]);
  await bed.start();
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('effects run on while the journal is read again: a result and feedback at that time are recorded', async () => {
  const bed = testBed();
  bed.tools = {
    ask: {},
    slow: { run: taking(100) },
    telling: {
      run: async (toolCall, _signal, clock) => {
        await clock.sleep(100);
        toolCall.onFeedback('noticed');
        await clock.sleep(1_000);
        return answer('told');
      },
    },
  };
  bed.models.answers = [ask(call('c1', 'slow'), call('c2', 'telling'), call('c3', 'ask')), say('done')];
  await bed.host({}, { telemetry: { meters: { add() {}, observe() {}, census: () => true }, spans: null } });
  await bed.start({ permissions: ASKING });
  const { read } = bed.journal;
  let reads = 0;
  bed.journal.read = async function* (...from: Parameters<typeof read>) {
    reads++;
    await bed.time.clock().sleep(200);
    yield* read.apply(bed.journal, from);
  };
  // The record of this approval is too large, so the machine that has taken it is discarded.
  const args = Object.fromEntries(Array.from({ length: 18_000 }, (_, i) => [`k${i}`, i]));
  const id = await bed.send('approve', { call_id: 'c3', decision: 'allow', args });
  await bed.time.advance(300);
  expect(reads).toBe(1);
  expect(bed.told(id)).toEqual(['rejected body_too_large']);
  expect(await bed.lines()).toContain('call_ended c1 ok');
  expect(await bed.eventsOf('feedback_received')).toMatchObject([{ source: 'tool:telling', body: 'noticed' }]);
  await bed.send('approve', { call_id: 'c3', decision: 'allow' });
  await bed.time.advance(1_000);
  const lines = await bed.lines();
  expect(lines.filter((line) => line.startsWith('call_ended'))).toEqual([
    'call_ended c1 ok',
    'call_ended c3 ok',
    'call_ended c2 ok',
  ]);
  expect(lines.at(-1)).toBe('agent_end end_turn');
});

test.each([
  ['the record of a command is too large', 18_000],
  ['the machine breaks', 1],
])('RUNNER-10: a session that has another owner by now is left when %s', async (_, members) => {
  const bed = testBed();
  bed.tools = { ask: {} };
  bed.models.answers = [ask(call('c1', 'ask')), say('done')];
  await bed.host();
  await bed.start({ permissions: ASKING });
  // Another host owns the session and starts the call.
  const { bytes, fence } = (await bed.bus.journal.last(refOf())) as StoredRecord;
  const session = await loadSession({ ...bed.bus, journal: bed.bus.journal }, refOf(), true);
  const frame = { sessionId: 's1', attempt: 'another', at: recordOf(bytes).at };
  const approve = {
    type: 'command',
    verb: 'approve',
    command_id: 'theirs',
    body: { call_id: 'c1', decision: 'allow' },
  };
  let [n, prevHash, last] = [session.n, session.hash, fence];
  for (const input of [{ type: 'owned', epoch: 2, host: 'another' }, approve] as Input[]) {
    const { events } = session.actor.step(input, ++n, Date.parse(frame.at));
    const sealed = sealRecord(buildRecord({ ...frame, n, prevHash }, input, events, session.actor.state));
    const appended = await bed.bus.journal.append(refOf(), sealed.bytes, last);
    if (appended.status !== 'stored') throw new Error('not appended');
    [prevHash, last] = [sealed.hash, appended.fence];
  }
  breakOn(({ command_id }) => command_id === 'late', members === 1 ? 1 : 0);
  const args = Object.fromEntries(Array.from({ length: members }, (_each, i) => [`k${i}`, i]));
  await bed.send('approve', { call_id: 'c1', decision: 'allow', args }, { id: 'late' });
  expect(await bed.records()).toHaveLength(n);
  expect(bed.told('late')).toEqual([]);
  expect(bed.log.some(({ message }) => message === `session released: record ${n} was written by another`)).toBe(true);
  // The note of the session names the host, so it claims the session: the call may have run.
  await bed.time.advance(60_000);
  expect((await bed.records())[n]?.input).toMatchObject({ type: 'owned', epoch: 3 });
  expect(bed.toolSource.runs).toEqual([]);
  expect(bed.told('late')).toEqual(['rejected already_decided']);
  expect(await bed.lines()).not.toContain('run_failed session session_failed');
});

test('a failed session continues with a new prompt', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host();
  breakOn((input) => input.type === 'call_outcome');
  await bed.start();
  await bed.send('prompt', 'try again');
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('other sessions of the host are not affected', async () => {
  const bed = testBed();
  bed.tools = { slow: { run: taking(500) } };
  bed.models.answers = [ask(call('c1', 'slow')), say('done')];
  await bed.host();
  await bed.start({}, { session: 'good' });
  await bed.start({}, { session: 'bad' });
  breakOn((input) => input.type === 'call_outcome');
  await bed.time.advance(1_000);
  const ends = await Promise.all(['good', 'bad'].map(async (session) => (await bed.lines(session)).at(-1)));
  expect(ends.sort()).toEqual(['agent_end end_turn', 'agent_end error']);
});

test('an invalid answer of a model or tool is its failure, and never an unreadable record', async () => {
  const bed = testBed();
  const garbage = { content: [{ type: 'image', data: 7 }], is_error: 'no' } as unknown as ReturnType<
    typeof answer
  >['result'];
  bed.tools = { odd: { run: async () => ({ status: 'ok', result: garbage }) } };
  bed.models.answers = [ask(call('c1', 'odd')), say('done')];
  await bed.host();
  await bed.start();
  const [ended] = await bed.eventsOf('call_ended');
  expect(ended).toMatchObject({ status: 'error', result: { detail: { code: 'tool_failed' } } });
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');

  bed.models.answers = [say('x', { text: 7 as unknown as string })];
  await bed.start({}, { session: 's2' });
  expect((await bed.lines('s2')).slice(-4)[0]).toBe('run_failed model model_stream_broken');
});

test('arguments with a __proto__ member replay byte for byte', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read', JSON.parse('{"a":1,"__proto__":{"x":1}}'))), say('done')];
  await bed.host();
  await bed.start();
  expect(bed.toolSource.runs).toMatchObject([{ args: { a: 1 } }]);
});

test('tools that open after the session was left are closed', async () => {
  const bed = testBed();
  bed.toolSource.openMs = 1_000;
  const host = await bed.host();
  await bed.start();
  host.abandon();
  await bed.time.advance(5_000);
  expect(bed.toolSource.openNow).toBe(0);
});

test('tools that a cancelled run opened and never used are closed', async () => {
  const bed = testBed();
  const open = bed.toolSource.open.bind(bed.toolSource);
  let opened: Toolset | null = null;
  bed.toolSource.open = async (spec) => {
    const toolset = await open(spec);
    if ('call' in toolset) opened = toolset;
    return toolset;
  };
  await bed.host();
  bed.toolSource.openMs = 50;
  // A slow append lets the provision arrive after the cancel: it is complete, and no longer required.
  bed.journal.next = [
    'none',
    async (append) => {
      await bed.time.clock().sleep(100);
      return append();
    },
  ];
  await bed.start({ permissions: ALLOW });
  await bed.send('steer', 'hm');
  await bed.send('cancel');
  await bed.time.advance(1_000);
  expect((await bed.lines()).at(-1)).toBe('agent_end cancelled pending 1');
  expect(opened).not.toBeNull();
  await bed.send('prompt', 'again');
  await bed.time.advance(1_000);
  expect(bed.toolSource.specs).toHaveLength(2);
  expect(bed.toolSource.openNow).toBe(0);
});
