/** `runToolCall`, the only caller of tools: it runs a call, or finds out its outcome; results are bounded. RUNNER-8, RUNNER-9. */
import type { ToolCall, ToolOutcome, ToolProbe, Toolset } from '@coxswain/ports';
import { BOUNDS, type CallOutcome, DEFAULT_TRAITS } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { runToolCall } from '../src/effects/run-tool-call.ts';
import { sha256Hex } from '../src/mod.ts';
import { ask, call, say } from './fake-model.ts';
import { answer, deaf, type FakeTool, taking } from './fake-tools.ts';
import { refOf, type TestBed, testBed } from './test-bed.ts';

/** Runs one call to its end. */
async function run(bed: TestBed, tool: FakeTool, advanceMs = 0): Promise<CallOutcome> {
  bed.tools = { tool };
  bed.models.answers = [ask(call('c1', 'tool')), say('done')];
  await bed.host();
  await bed.start();
  await bed.time.advance(advanceMs);
  const record = (await bed.records()).find(({ input }) => input.type === 'call_outcome');
  return record?.input as CallOutcome;
}

/** Runs an idempotent call that an earlier owner may have sent, and that no worker knows. */
async function sentBefore(call: Toolset['call'], signal: AbortSignal): Promise<CallOutcome> {
  const { bus, time } = testBed();
  const toolset: Toolset = { tools: [], call, probe: async () => ({ state: 'unknown' }), close: async () => [] };
  const tool = { ...TOOL, traits: { ...DEFAULT_TRAITS, idempotent: true } };
  const dispatch = { effectId: '3-0', call: SENT, tool, hasReadOnTool: false, mayHaveRun: true };
  const outcome = runToolCall(toolset, bus.blobs, time.clock('host'), dispatch, signal);
  await time.advance(20_000);
  return (await outcome) as CallOutcome;
}

const textOf = ({ result }: CallOutcome) => (result.content[0] as { text: string }).text;
const texts = (...sizes: number[]): FakeTool => ({
  run: async () => ({
    status: 'ok',
    result: { is_error: false, content: sizes.map((size) => ({ type: 'text', text: 'é'.repeat(size / 2) })) },
  }),
});

describe('a result', () => {
  const bound = BOUNDS.toolResultInlineMaxBytes;

  test.each([bound - 2, bound])('of %i bytes stays as it is', async (size) => {
    const outcome = await run(testBed(), texts(size));
    expect(textOf(outcome)).toBe('é'.repeat(size / 2));
    expect(outcome.result.detail).toBeUndefined();
  });

  test('over the bound is truncated at a character, and names the stored whole', async () => {
    const bed = testBed();
    const outcome = await run(bed, texts(bound + 2));
    const whole = Buffer.from('é'.repeat(bound / 2 + 1));
    expect(Buffer.byteLength(textOf(outcome))).toBeLessThanOrEqual(bound);
    expect(textOf(outcome)).not.toContain('\ufffd');
    expect(outcome.result.detail).toEqual({ whole: { sha256: sha256Hex(whole), bytes: whole.length } });
    expect(textOf(outcome)).toContain(`of ${whole.length} bytes are shown`);
    expect(Buffer.from((await bed.bus.blobs.get(sha256Hex(whole))) as Uint8Array)).toEqual(whole);
  });

  test('of many parts is measured together', async () => {
    const outcome = await run(testBed(), texts(bound / 2, bound / 2, 2));
    expect(outcome.result.content).toHaveLength(1);
    expect(outcome.result.detail?.whole).toMatchObject({ bytes: bound + 4 });
  });

  test('whose rest cannot be stored remains the result, because the call has run', async () => {
    const bed = testBed();
    const failing = { ...bed.bus.blobs, put: async () => Promise.reject(new Error('no quorum')) };
    bed.tools = { tool: texts(bound + 2) };
    bed.models.answers = [ask(call('c1', 'tool')), say('done')];
    await bed.host({}, { blobs: failing });
    await bed.start();
    const [ended] = await bed.eventsOf('call_ended');
    expect(ended).toMatchObject({ status: 'ok' });
    expect(JSON.stringify(ended?.result)).toContain('could not be stored');
    expect(bed.toolSource.runs).toHaveLength(1);
  });

  test('that says it failed, by status or by flag, is an error', async () => {
    const byFlag = { ...answer('oops'), result: { ...answer('oops').result, is_error: true } };
    for (const outcome of [answer('oops', 'error'), byFlag]) {
      const bed = testBed();
      await run(bed, { run: async () => outcome });
      expect(await bed.eventsOf('call_ended')).toMatchObject([{ status: 'error', is_error: true }]);
    }
  });
});

test('a call carries the key of its effect, its epoch and exactly the admitted arguments', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read', { path: 'a' })), say('done')];
  await bed.host();
  await bed.start();
  expect(bed.toolSource.runs).toMatchObject([{ key: 'default.s1.3-0', epoch: 1, args: { path: 'a' } }]);
});

const TOOL = { name: 'tool', description: '', input_schema: {}, source: 'test', traits: DEFAULT_TRAITS };
const SENT: ToolCall = {
  idempotencyKey: 'default.s1.3-0',
  ref: refOf('s1'),
  callId: 'c1',
  tool: 'tool',
  args: {},
  epoch: 2,
  onProgress: () => {},
  onFeedback: () => {},
};

describe('after a crash, a call that may have been sent', () => {
  /** Crashes the host during the call, and lets another one claim the session. */
  async function recovered(tool: FakeTool, advanceMs = 5_000) {
    const bed = testBed();
    bed.tools = { tool: { run: taking(60_000, 'first'), ...tool } };
    bed.models.answers = [ask(call('c1', 'tool')), say('done')];
    const first = await bed.host();
    await bed.start();
    first.abandon();
    bed.tools = { tool: { run: async () => answer('second'), ...tool } };
    await bed.host();
    await bed.time.advance(advanceMs);
    const [ended] = await bed.eventsOf('call_ended');
    return { bed, runs: bed.toolSource.runs.length, ended };
  }

  test('and that no worker knows is interrupted, not repeated', async () => {
    const { runs, ended } = await recovered({});
    expect(runs).toBe(1);
    expect(ended).toMatchObject({
      status: 'interrupted',
      is_error: true,
      result: { detail: { code: 'tool_interrupted' } },
    });
  });

  test('runs again under the same key if it is idempotent', async () => {
    const { bed, runs, ended } = await recovered({ traits: { idempotent: true } });
    expect(runs).toBe(2);
    expect(new Set(bed.toolSource.runs.map(({ key }) => key)).size).toBe(1);
    expect(bed.toolSource.runs.map(({ epoch }) => epoch)).toEqual([1, 2]);
    expect(ended).toMatchObject({ status: 'ok', result: { content: [{ text: 'second' }] } });
  });

  test('and that its worker finished has that result', async () => {
    const { runs, ended } = await recovered({ probe: () => ({ state: 'done', outcome: answer('from the ledger') }) });
    expect(runs).toBe(1);
    expect(ended).toMatchObject({ status: 'ok', result: { content: [{ text: 'from the ledger' }] } });
  });

  test('and that an unreachable worker may have is waited for', async () => {
    let probes = 0;
    const probe = (): ToolProbe => (++probes < 5 ? { state: 'silent' } : { state: 'done', outcome: answer('at last') });
    const { runs, ended } = await recovered({ probe });
    expect(probes).toBe(5);
    expect(runs).toBe(1);
    expect(ended).toMatchObject({ status: 'ok', result: { content: [{ text: 'at last' }] } });
  });

  test('and whose worker died meanwhile is interrupted', async () => {
    let probes = 0;
    const { runs, ended } = await recovered({ probe: () => ({ state: ++probes < 3 ? 'silent' : 'unknown' }) });
    expect(runs).toBe(1);
    expect(ended?.status).toBe('interrupted');
  });

  test('and that an unreachable worker may have runs again at once if it is idempotent', async () => {
    const { runs, ended } = await recovered({ traits: { idempotent: true }, probe: () => ({ state: 'silent' }) });
    expect(runs).toBe(2);
    expect(ended).toMatchObject({ status: 'ok', result: { content: [{ text: 'second' }] } });
  });

  test('and that still runs is attached to, with its progress and its abort signal', async () => {
    let attached: { epoch: number; aborted: boolean } | undefined;
    const { runs, ended } = await recovered({
      probe: () => ({
        state: 'running',
        attach: async ({ epoch, onFeedback }, signal) => {
          attached = { epoch, aborted: signal.aborted };
          onFeedback('told to the new owner');
          return answer('attached');
        },
      }),
    });
    expect(attached).toEqual({ epoch: 2, aborted: false });
    expect(runs).toBe(1);
    expect(ended).toMatchObject({ status: 'ok', result: { content: [{ text: 'attached' }] } });
  });

  test('and whose worker is lost after the attach is looked up again', async () => {
    let probes = 0;
    const lost = async () => ({ ...answer('gone', 'error'), status: 'lost' as const });
    const probe = (): ToolProbe => (++probes < 3 ? { state: 'running', attach: lost } : { state: 'unknown' });
    const { runs, ended } = await recovered({ probe });
    expect(probes).toBe(3);
    expect(runs).toBe(1);
    expect(ended?.status).toBe('interrupted');
  });

  test('and that is cancelled before the lookup is stopped by the worker that still runs it', async () => {
    const bed = testBed();
    const attach = async (_: ToolCall, { reason }: AbortSignal): Promise<ToolOutcome> => ({
      ...answer(`stopped: ${reason}`, 'error'),
      status: 'cancelled',
    });
    const toolset: Toolset = {
      tools: [],
      call: async () => answer('ran again'),
      probe: async () => ({ state: 'running', attach }),
      close: async () => [],
    };
    const dispatch = { effectId: '3-0', call: SENT, tool: TOOL, hasReadOnTool: false, mayHaveRun: true };
    const ended = await runToolCall(
      toolset,
      bed.bus.blobs,
      bed.time.clock('host'),
      dispatch,
      AbortSignal.abort('preempted'),
    );
    expect(ended).toMatchObject({ status: 'cancelled', result: { content: [{ text: 'stopped: preempted' }] } });
  });

  test('and that is cancelled is not run again though it is idempotent: its outcome is unknown', async () => {
    let runs = 0;
    const call = async () => {
      runs++;
      return answer('ran again');
    };
    const ended = await sentBefore(call, AbortSignal.abort('preempted'));
    expect(runs).toBe(0);
    expect(ended).toMatchObject({ status: 'interrupted' });
    expect(textOf(ended)).toBe(
      'The outcome of this tool call is unknown: the host ended while the call ran. It was not re-run.',
    );
  });

  test('and that was cancelled is stopped by the next owner, which gets the outcome of its worker', async () => {
    const bed = testBed();
    const signals: AbortSignal[] = [];
    bed.tools = { tool: { run: deaf(60_000) } };
    bed.models.answers = [ask(call('c1', 'tool')), say('done')];
    const first = await bed.host();
    await bed.start();
    await bed.send('cancel_call', { call_id: 'c1', timeout_ms: 30_000 });
    first.abandon();
    const attach = async (_call: unknown, signal: AbortSignal) => {
      signals.push(signal);
      await bed.time.clock('worker').sleep(2_000);
      return answer('done all the same');
    };
    bed.tools = { tool: { probe: () => ({ state: 'running', attach }) } };
    await bed.host();
    await bed.time.advance(5_000);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(JSON.stringify(await bed.eventsOf('call_ended'))).toContain('done all the same');
  });

  test.each([
    [
      'is cancelled during it, has an unknown outcome',
      'cancelled',
      'interrupted',
      'The outcome of this tool call is unknown',
    ],
    ['finds no worker, may have taken effect', 'unavailable', 'error', 'may have taken effect'],
  ] as const)('and that is sent again and %s', async (_title, status, ended, text) => {
    const cancel = new AbortController();
    const call = async (): Promise<ToolOutcome> => {
      if (status === 'cancelled') cancel.abort('oops');
      return { status, result: { content: [{ type: 'text', text: 'No process has it' }], is_error: true } };
    };
    const outcome = await sentBefore(call, cancel.signal);
    expect(outcome).toMatchObject({ status: ended });
    expect(textOf(outcome)).toContain(text);
  });

  test('is interrupted also if the tools cannot be opened again', async () => {
    const bed = testBed();
    bed.tools = { tool: { run: taking(60_000) } };
    bed.models.answers = [ask(call('c1', 'tool')), say('done')];
    const first = await bed.host();
    await bed.start();
    first.abandon();
    bed.toolSource.failure = { code: 'mcp_server_failed', message: 'gone' };
    await bed.host();
    await bed.time.advance(1_000);
    expect(await bed.eventsOf('call_ended')).toMatchObject([{ status: 'interrupted' }]);
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });

  test('and whose end was recorded is not touched', async () => {
    const bed = testBed();
    bed.models.answers = [ask(call('c1', 'read')), say('done', { delayMs: 1_000 })];
    const first = await bed.host();
    await bed.start();
    first.abandon();
    await bed.host();
    await bed.time.advance(5_000);
    expect(bed.toolSource.runs).toHaveLength(1);
    expect(await bed.eventsOf('call_ended')).toMatchObject([{ status: 'ok' }]);
  });

  test('two of them open the tools again once, and cancelling one does not cost the other', async () => {
    const bed = testBed();
    bed.tools = { tool: { traits: { idempotent: true }, run: taking(60_000) } };
    bed.models.answers = [ask(call('c1', 'tool'), call('c2', 'tool')), say('done')];
    const first = await bed.host();
    await bed.start();
    first.abandon();
    bed.tools = { tool: { traits: { idempotent: true }, run: taking(100, 'ran') } };
    bed.toolSource.openMs = 2_000;
    await bed.host();
    await bed.send('cancel_call', { call_id: 'c1', timeout_ms: 100 });
    await bed.time.advance(10_000);
    expect(bed.toolSource.specs).toHaveLength(2);
    const ends = (await bed.eventsOf('call_ended')).map(({ call_id, status }) => `${call_id} ${status}`);
    expect(ends.sort()).toEqual(['c1 cancelled', 'c2 ok']);
  });
});

describe('a call that is cancelled', () => {
  test('gets the abort signal, ends as cancelled, and the model is informed; the session continues', async () => {
    const bed = testBed();
    await run(bed, { run: taking(60_000) });
    const id = await bed.send('cancel_call', { call_id: 'c1', reason: 'wrong file' });
    await bed.time.settle();
    expect(bed.toolSource.runs).toMatchObject([{ aborted: true }]);
    expect(await bed.eventsOf('control_outcome')).toMatchObject([
      { control: 'cancel_call', command_id: id, status: 'cancelled', target: 'c1', tool: 'tool', reason: 'wrong file' },
    ]);
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });

  test('and does not stop in time is reported as a timeout; its later result is dropped and noted', async () => {
    const bed = testBed();
    await run(bed, { run: deaf(60_000) });
    await bed.send('cancel_call', { call_id: 'c1', timeout_ms: 2_000 });
    await bed.time.advance(1_999);
    expect(await bed.eventsOf('call_ended')).toEqual([]);
    await bed.time.advance(1);
    expect(await bed.eventsOf('call_ended')).toMatchObject([{ status: 'cancelled', timed_out: true }]);
    expect(await bed.eventsOf('control_outcome')).toMatchObject([{ status: 'timeout' }]);
    const records = (await bed.records()).length;
    await bed.time.advance(60_000);
    expect(await bed.records()).toHaveLength(records);
    const note = bed.log.find(({ message }) => message === 'late outcome dropped');
    expect(note).toMatchObject({ fields: { session_id: 's1', call_id: 'c1', kind: 'call_tool' } });
  });

  test('with a timeout of 0 is abandoned at once', async () => {
    const bed = testBed();
    await run(bed, { run: deaf(60_000) });
    await bed.send('cancel_call', { call_id: 'c1', timeout_ms: 0 });
    expect(await bed.eventsOf('control_outcome')).toMatchObject([{ status: 'timeout' }]);
  });

  test('and that has already ended keeps its result', async () => {
    const bed = testBed();
    await run(bed, { run: taking(100, 'finished') });
    await Promise.all([bed.time.advance(100), bed.send('cancel_call', { call_id: 'c1' })]);
    await bed.time.advance(1_000);
    expect(await bed.eventsOf('call_ended')).toHaveLength(1);
  });
});

test('a cancelled run waits for a call that does not stop for the grace period only', async () => {
  const bed = testBed();
  await run(bed, { run: deaf(60_000) });
  await bed.send('cancel');
  await bed.time.advance(BOUNDS.abortGraceMs - 1);
  expect((await bed.lines()).at(-1)).not.toMatch(/^agent_end/);
  await bed.time.advance(1);
  expect((await bed.lines()).at(-1)).toBe('agent_end cancelled');
});

test('progress of a running call is published to watchers, with its effect and a consecutive index', async () => {
  const bed = testBed();
  const heard: unknown[] = [];
  bed.bus.subscribeDeltas(refOf(), (delta) => heard.push(delta));
  await run(bed, {
    run: async ({ onProgress }) => {
      onProgress('half');
      onProgress('whole');
      return answer('ok');
    },
  });
  expect(heard).toMatchObject([
    { kind: 'progress', effect_id: '3-0', index: 0, text: 'half', call_id: 'c1' },
    { kind: 'progress', effect_id: '3-0', index: 1, text: 'whole', call_id: 'c1' },
    { kind: 'text' },
  ]);
});

describe('a call whose worker dies under a living host', () => {
  const lost = { ...answer('gone', 'error'), status: 'lost' as const };

  test('is interrupted, unless another worker knows the call', async () => {
    expect(await run(testBed(), { run: async () => lost }, 1_000)).toMatchObject({
      status: 'interrupted',
      result: { detail: { code: 'tool_interrupted' } },
    });
    const known: FakeTool = { run: async () => lost, probe: () => ({ state: 'done', outcome: answer('known') }) };
    expect(await run(testBed(), known, 1_000)).toMatchObject({ status: 'ok' });
  });

  test('runs again if its tool is idempotent, at most three times', async () => {
    const bed = testBed();
    const ended = await run(bed, { traits: { idempotent: true }, run: async () => lost }, 1_000);
    expect(ended.status).toBe('interrupted');
    expect(textOf(ended)).toBe(
      'The outcome of this tool call is unknown: gone. It may have run several times, and is not run again.',
    );
    expect(bed.toolSource.runs).toHaveLength(3);
    expect(new Set(bed.toolSource.runs.map(({ key }) => key)).size).toBe(1);
  });

  test('may have run several times if the tool stops it after it was sent again', async () => {
    let runs = 0;
    const stops: FakeTool = {
      traits: { idempotent: true },
      run: async () => (++runs === 1 ? lost : { ...answer('stopped', 'error'), status: 'cancelled' }),
    };
    const ended = await run(testBed(), stops, 1_000);
    expect(ended.status).toBe('interrupted');
    expect(textOf(ended)).toContain('tool stopped the call by itself. It may have run several times');
  });

  test('is not sent again after its toolset has moved it the maximum number of times', async () => {
    const moved: FakeTool = { traits: { idempotent: true }, run: async () => ({ ...lost, moves: 3 }) };
    const bed = testBed();
    expect(await run(bed, moved, 1_000)).toMatchObject({ status: 'interrupted' });
    expect(bed.toolSource.runs).toHaveLength(1);
    let probes = 0;
    const attached: FakeTool = {
      traits: { idempotent: true },
      run: async () => lost,
      probe: () => {
        probes++;
        return { state: 'running', attach: async () => ({ ...lost, moves: 2 }) };
      },
    };
    expect(await run(testBed(), attached, 1_000)).toMatchObject({ status: 'interrupted' });
    expect(probes).toBe(1);
  });

  test('waits for a worker for a bounded time if its tool is idempotent and has no live worker', async () => {
    const nobody = { ...answer('nobody', 'error'), status: 'unavailable' as const };
    let asked = 0;
    const later: FakeTool = {
      traits: { idempotent: true },
      run: async () => (++asked === 1 ? lost : asked < 10 ? nobody : answer('at last')),
    };
    expect(await run(testBed(), later, 5_000)).toMatchObject({ status: 'ok' });
    asked = 0;
    const never: FakeTool = { traits: { idempotent: true }, run: async () => (++asked === 1 ? lost : nobody) };
    expect(await run(testBed(), never, 60_000)).toMatchObject({ status: 'error' });
    expect(asked).toBe(62);
  });

  test('does not wait if it was never sent: nothing is in doubt', async () => {
    let asked = 0;
    const nobody: FakeTool = {
      traits: { idempotent: true },
      run: async () => {
        asked++;
        return { ...answer('nobody', 'error'), status: 'unavailable' };
      },
    };
    expect(await run(testBed(), nobody, 1_000)).toMatchObject({ status: 'error' });
    expect(asked).toBe(1);
  });
});
