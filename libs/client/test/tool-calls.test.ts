/** The calls of a served tool and its ledger, without a bus: what is asked and ordered, and what is said. */
import { RunningWork, WorkLedger } from '@coxswain/bus';
import { toolWork } from '@coxswain/handlers';
import type { CallEnding, WorkOrder, WorkReport, WorkRequest } from '@coxswain/protocol';
import { APPROVAL_CHECK_MS, SERVED_BOUNDS, SERVED_LIVENESS } from '@coxswain/protocol';
import { expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { checkTool, defineTool, LATER, type Tool, ToolDefinitionError } from '../src/define-tool.ts';

type Said = Pick<WorkReport, 'type'> & Record<string, unknown>;

const asked = (effect: string, epoch = 1, args: WorkRequest['args'] = {}): WorkRequest => ({
  v: 1,
  key: `default.s.${effect}`,
  session_id: 's',
  call_id: `c${effect}`,
  epoch,
  args,
});
const order = (want: WorkOrder['want'], effect: string, epoch = 1, hold = 1): WorkOrder =>
  ({
    v: 1,
    key: `default.s.${effect}`,
    session_id: 's',
    epoch,
    want,
    ...(want === 'abort' ? { reason: 'so' } : {}),
    ...(want === 'start' ? { hold } : {}),
  }) as WorkOrder;

/** A tool whose calls end when the test says so. */
async function bed(more: Partial<Tool> = {}, durable: Promise<boolean> = Promise.resolve(true)) {
  const ends: ((answer: string | typeof LATER) => void)[] = [];
  const runs: AbortSignal[] = [];
  const brought: unknown[] = [];
  const execute: Tool['execute'] = (_, { abortSignal: signal }) => {
    runs.push(signal);
    return new Promise((resolve) => ends.push(resolve));
  };
  const clock = { nowMs: 0 };
  const tool = await checkTool({ name: 't', description: '', inputSchema: { type: 'object' }, execute, ...more });
  const calls = new RunningWork((request) => toolWork(tool, request), {
    tenant: 'default',
    clock: { nowMs: () => clock.nowMs, after: () => () => undefined },
    sendOutcome: (_, call, ending) => {
      brought.push({ ...call, ...ending });
      return durable;
    },
  });
  const say = (to: (answer: (said: Said) => void) => void): Said[] => {
    const said: Said[] = [];
    to((one) => void said.push(one));
    return said;
  };
  return {
    calls,
    runs,
    brought,
    clock,
    ask: (one: WorkRequest) => say((answer) => calls.take(one, answer as never)),
    order: (one: WorkOrder) => say((answer) => calls.order(one, answer as never)),
    /** Lets the oldest call end, and what follows of it happen. */
    async end(answer: string | typeof LATER = 'x') {
      await settled(() => ends.length > 0);
      ends.shift()?.(answer);
      await turns();
    },
  };
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
}

async function settled(is: () => boolean): Promise<void> {
  for (let turn = 0; turn < 100 && !is(); turn++) await Promise.resolve();
  expect(is()).toBe(true);
}

test('a key runs once, and whoever asks again hears what became of it', async () => {
  const { ask, end, runs } = await bed();
  const first = ask(asked('1-1'));
  const second = ask(asked('1-1'));
  await end('the result');
  const third = ask(asked('1-1'));
  expect(runs).toHaveLength(1);
  // Whoever asked last is told.
  expect(first.map(({ type }) => type)).toEqual(['running']);
  expect(second).toMatchObject([{ type: 'running' }, { type: 'ended', result: { content: [{ text: 'the result' }] } }]);
  expect(third).toMatchObject([{ type: 'ended', status: 'ok' }]);
});

test('an instance reports that it ran a call whose outcome it no longer keeps', async () => {
  const { ask, order: say, end, clock } = await bed();
  ask(asked('1-1'));
  await end();
  clock.nowMs += SERVED_BOUNDS.ledgerMaxAgeMs + 1;
  // "Unknown" would let the host send the call again.
  expect(say(order('attach', '1-1'))).toMatchObject([{ type: 'given_up' }]);
  expect(say(order('attach', '9-9'))).toEqual([{ type: 'unknown' }]);
});

test('a held call runs at the order to begin its newest sending, and an order that comes late begins nothing', async () => {
  const { ask, order: say, runs } = await bed();
  expect(ask({ ...asked('1-1'), hold: 1 })).toEqual([{ type: 'ready', hold: 1 }]);
  expect(ask({ ...asked('1-1'), hold: 2 })).toEqual([{ type: 'ready', hold: 2 }]);
  expect(say(order('start', '1-1', 1, 1))).toEqual([]);
  await turns();
  expect(runs).toHaveLength(0);
  expect(say(order('attach', '1-1'))).toEqual([{ type: 'ready', hold: 2 }]);
  expect(say(order('start', '1-1', 1, 2))).toMatchObject([{ type: 'running' }]);
  expect(say(order('start', '1-1', 1, 1))).toMatchObject([{ type: 'running' }]);
  await turns();
  expect(runs).toHaveLength(1);
});

test('a held call is dropped when heartbeats of its time count no more, by a probe and by an abort: it never begins', async () => {
  const { ask, order: say, runs, clock } = await bed();
  for (const effect of ['1-1', '1-2', '1-3']) ask({ ...asked(effect), hold: 1 });
  expect(say(order('probe', '1-2'))).toEqual([{ type: 'unknown' }]);
  expect(say(order('abort', '1-3'))).toEqual([{ type: 'unknown' }]);
  clock.nowMs = SERVED_LIVENESS.ttlMs;
  for (const effect of ['1-1', '1-2', '1-3']) expect(say(order('start', effect))).toEqual([{ type: 'unknown' }]);
  await turns();
  expect(runs).toHaveLength(0);
});

test('a probe says unknown, running or how it ended, and refuses older owners from then on', async () => {
  const { ask, order: say, end, runs } = await bed();
  expect(say(order('probe', '1-1', 3))).toMatchObject([{ type: 'unknown' }]);
  expect(ask(asked('1-1', 2))).toMatchObject([{ type: 'refused', code: 'stale_epoch' }]);
  ask(asked('1-1', 3));
  expect(say(order('probe', '1-1', 4))).toMatchObject([{ type: 'running' }]);
  const attached = say(order('attach', '1-1', 4));
  expect(say(order('abort', '1-1', 3))).toMatchObject([{ type: 'refused' }]);
  await end();
  expect(runs[0]?.aborted).toBe(false);
  expect(attached.at(-1)).toMatchObject({ type: 'ended', status: 'ok' });
  expect(say(order('probe', '1-1', 5))).toMatchObject([{ type: 'ended' }]);
});

test('what is told to stop before it came does not begin, and nobody takes it for a call that ran', async () => {
  const { ask, order: say, runs } = await bed();
  expect(say(order('abort', '1-1'))).toMatchObject([{ type: 'unknown' }]);
  expect(say(order('probe', '1-1'))).toMatchObject([{ type: 'unknown' }]);
  expect(ask(asked('1-1'))).toMatchObject([{ type: 'ended', status: 'cancelled' }]);
  expect(runs).toHaveLength(0);
});

test('an abort reaches the signal, and what the function then throws is a cancelled call', async () => {
  const { ask, order: say } = await bed({
    execute: (_, { abortSignal: signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  });
  const said = ask(asked('1-1'));
  await turns();
  expect(say(order('abort', '1-1'))).toMatchObject([{ type: 'running' }]);
  await settled(() => said.length === 2);
  expect(said[1]).toMatchObject({ type: 'ended', status: 'cancelled' });
});

test('why a call was given up is cut between code points', async () => {
  const { ask, calls } = await bed({
    execute: (_, { abortSignal: signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  });
  const said = ask(asked('1-1'));
  await turns();
  calls.abortAll(`${'x'.repeat(2_047)}😀`);
  await settled(() => said.length === 2);
  expect(said[1]).toEqual({ type: 'given_up', message: 'x'.repeat(2_047) });
});

test('a long-running call runs like any other until its function has ended, and is brought with the newest epoch that has asked for it', async () => {
  const { ask, order: say, end, brought } = await bed({ longRunning: true });
  const first = ask(asked('1-1'));
  expect(say(order('probe', '1-1'))).toMatchObject([{ type: 'running' }]);
  const attached = say(order('attach', '1-1', 2));
  expect(attached).toMatchObject([{ type: 'running' }]);
  await end('built');
  await settled(() => brought.length === 1);
  expect(brought).toMatchObject([{ epoch: 2, status: 'ok', result: { content: [{ text: 'built' }] } }]);
  // The outcome is the command alone: an answer beside it would be a second one.
  expect([first, attached].flat().map(({ type }) => type)).toEqual(['running', 'running', 'accepted']);
  expect(attached.at(-1)).not.toHaveProperty('epoch');
  expect(say(order('probe', '1-1', 3))).toMatchObject([{ type: 'accepted', epoch: 2 }]);
});

test('a long-running call is not accepted before the bus has its outcome, and answers for itself where the bus never takes it', async () => {
  let stored: (is: boolean) => void = () => undefined;
  const durable = new Promise<boolean>((resolve) => {
    stored = resolve;
  });
  const { ask, order: say, end, brought } = await bed({ longRunning: true }, durable);
  const said = ask(asked('1-1'));
  await end('built');
  await settled(() => brought.length === 1);
  expect(say(order('probe', '1-1'))).toMatchObject([{ type: 'running' }]);
  expect(said.map(({ type }) => type)).toEqual(['running']);
  stored(false);
  await settled(() => said.length === 2);
  expect(said[1]).toMatchObject({ type: 'ended', result: { content: [{ text: 'built' }] } });
});

test('a call that answers later is accepted when it says so, with the epoch that its function was given', async () => {
  const { ask, order: say, end, brought } = await bed({ longRunning: true });
  ask(asked('1-1', 1));
  const attached = say(order('attach', '1-1', 2));
  await end(LATER);
  await settled(() => attached.length === 2);
  expect(attached).toMatchObject([{ type: 'running' }, { type: 'accepted', epoch: 1 }]);
  expect(say(order('probe', '1-1', 3))).toMatchObject([{ type: 'accepted', epoch: 1 }]);
  expect(brought).toEqual([]);
});

test('only a long-running tool may leave its outcome to somebody else', async () => {
  const later = await bed({ longRunning: true, execute: () => LATER });
  later.ask(asked('1-1'));
  await turns();
  expect(later.brought).toEqual([]);
  expect(later.order(order('probe', '1-1'))).toMatchObject([{ type: 'accepted' }]);
  const quick = await bed({ execute: () => LATER });
  const said = quick.ask(asked('1-1'));
  await settled(() => said.length === 2);
  expect(said[1]).toMatchObject({ type: 'ended', status: 'error' });
});

test('arguments are checked again, and a result that is none or too large is an error', async () => {
  const strict = await bed({ inputSchema: z.object({ n: z.number() }) as never });
  const bad = strict.ask(asked('1-1', 1, JSON.parse('{"__proto__": {"n": 1}}')));
  await settled(() => bad.length === 2);
  expect(bad[1]).toMatchObject({ status: 'error', result: { detail: { code: 'invalid_call_arguments' } } });
  expect(strict.runs).toHaveLength(0);
  for (const [returned, code] of [
    [{ content: 'no list' }, 'tool_failed'],
    ['x'.repeat(SERVED_BOUNDS.outcomeMaxBytes), 'tool_result_too_large'],
  ] as const) {
    const { ask } = await bed({ execute: () => returned as never });
    const said = ask(asked('1-1'));
    await settled(() => said.length === 2);
    expect(said[1]).toMatchObject({ status: 'error', result: { detail: { code } } });
  }
});

test('a value that is no result becomes its JSON text', async () => {
  const { ask } = await bed({ execute: () => ({ total: 5 }) });
  const said = ask(asked('1-1'));
  await settled(() => said.length === 2);
  expect(said[1]).toMatchObject({ status: 'ok', result: { content: [{ type: 'text', text: '{"total":5}' }] } });
});

test('a drain waits for what runs, and takes nothing more', async () => {
  const { ask, calls, end } = await bed();
  const said = ask(asked('1-1'));
  let drained = false;
  const draining = calls.drain().then(() => {
    drained = true;
  });
  expect(ask(asked('1-2'))).toMatchObject([{ type: 'refused', code: 'tool_unavailable' }]);
  await turns();
  expect(drained).toBe(false);
  await end();
  await draining;
  expect(said.at(-1)).toMatchObject({ type: 'ended', status: 'ok' });
});

test('an instance refuses calls, steps and questions beyond the limit of each', async () => {
  const { ask } = await bed();
  const kinds = [{}, { hold: 1 }, { approval: true }] as const;
  for (const kind of kinds) {
    const asks = (effect: string) => ask({ ...asked(effect), ...kind });
    const first = asks(`${kinds.indexOf(kind)}-1`);
    for (let n = 2; n <= SERVED_BOUNDS.requestsAtOnceMax; n++) asks(`${kinds.indexOf(kind)}-${n}`);
    expect(first).not.toMatchObject([{ type: 'refused' }]);
    expect(asks('9-1')).toMatchObject([{ type: 'refused', code: 'tool_unavailable' }]);
  }
});

test('the ledger forgets the oldest that ended, by number, bytes and age, and never what runs', () => {
  let nowMs = 0;
  const ending = (text: string): CallEnding => ({
    status: 'ok',
    result: { content: [{ type: 'text', text }], is_error: false },
  });
  const made = (bounds: Partial<ConstructorParameters<typeof WorkLedger>[1]>) =>
    new WorkLedger(() => nowMs, {
      ledgerEntriesMax: 100,
      ledgerMaxBytes: 10_000,
      ledgerMaxAgeMs: 1_000,
      sessionsFencedMax: 2,
      ...bounds,
    });
  const known = (ledger: WorkLedger) => ['r', 'a', 'b', 'c'].filter((key) => ledger.find(key) !== null);
  const fill = (ledger: WorkLedger) => {
    ledger.start('r', 1, () => undefined);
    for (const key of ['a', 'b', 'c']) {
      ledger.end(
        ledger.start(key, 1, () => undefined),
        ending('x'.repeat(1_000)),
      );
      nowMs += 400;
    }
  };
  const byNumber = made({ ledgerEntriesMax: 2 });
  fill(byNumber);
  expect(known(byNumber)).toEqual(['r', 'b', 'c']);
  const byBytes = made({ ledgerMaxBytes: 1_500 });
  fill(byBytes);
  expect(known(byBytes)).toEqual(['r', 'c']);
  const byAge = made({});
  fill(byAge);
  expect(known(byAge)).toEqual(['r', 'b', 'c']);
  nowMs += 10_000;
  expect(known(byAge)).toEqual(['r']);
});

test('the newest epoch of a session is remembered until others push it out', () => {
  const ledger = new WorkLedger(() => 0, {
    ledgerEntriesMax: 1,
    ledgerMaxBytes: 1,
    ledgerMaxAgeMs: 1,
    sessionsFencedMax: 2,
  });
  expect(ledger.admit('a', 5)).toBe(true);
  expect(ledger.admit('a', 4)).toBe(false);
  expect(ledger.admit('b', 1)).toBe(true);
  expect(ledger.admit('a', 5)).toBe(true);
  ledger.admit('c', 1);
  expect(ledger.admit('a', 4)).toBe(false);
});

test('arguments are typed by the schema', () => {
  defineTool({
    name: 't',
    description: '',
    inputSchema: z.object({ n: z.number(), text: z.string().optional() }),
    execute({ n, text }) {
      const both: [number, string | undefined] = [n, text];
      // @ts-expect-error It is a number.
      const wrong: string = n;
      return `${both} ${wrong}`;
    },
  });
  defineTool({
    name: 't',
    description: '',
    inputSchema: { type: 'object' },
    execute: ({ anything }) => String(anything),
  });
});

test.each([
  [{ name: 'read_file' }, /a host has a tool of this name itself/],
  [{ name: 'server__tool' }, /MCP server/],
  [{ name: 'a.b' }, /1 to 128 characters/],
  [{ inputSchema: { type: 'object', required: 'nonsense' } }, /schema cannot be used/],
  [{ inputSchema: undefined }, /has no inputSchema/],
  [{ idempotnt: true }, /idempotnt/],
  [{ execute: undefined }, /is not a tool/],
])('a definition with %o is refused', async (wrong, words) => {
  const tool = { name: 't', description: '', inputSchema: { type: 'object' }, execute: () => 'x', ...wrong };
  await expect(checkTool(tool)).rejects.toThrow(words);
  await expect(checkTool(tool)).rejects.toBeInstanceOf(ToolDefinitionError);
});

test.each<[string, Tool['needsApproval'], boolean]>([
  ['a function that returns true', () => true, true],
  ['a function that returns false', ({ n }) => n !== 1, false],
  ['a function that throws', () => Promise.reject(new Error('broken')), true],
  ['a function that returns no boolean', (() => undefined) as never, true],
  // Asked although it has no function: another version is announced.
  ['no function', undefined, true],
])('whether a person must approve a call is answered by %s, and runs nothing', async (_, needsApproval, needed) => {
  const { ask, runs } = await bed({ inputSchema: z.object({ n: z.number().default(1) }) as never, needsApproval });
  const said = ask({ ...asked('0-0.q'), epoch: undefined, approval: true });
  await vi.waitFor(() => expect(said).toEqual([{ type: 'answered', answer: { status: 'returned', raw: needed } }]));
  expect(runs).toEqual([]);
});

test('a function that does not answer in time whether a call needs an approval counts as yes', async () => {
  const { ask } = await bed({ needsApproval: () => new Promise(() => undefined) });
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const said = ask({ ...asked('0-0.q'), epoch: undefined, approval: true });
  await vi.advanceTimersByTimeAsync(APPROVAL_CHECK_MS);
  expect(said.at(-1)).toEqual({ type: 'answered', answer: { status: 'returned', raw: true } });
});

test.each([
  [{ run: () => 'x' }, /run is named execute/],
  [{ schema: {} }, /schema is named inputSchema/],
  [{ long_running: true }, /long_running is named longRunning/],
  [{ needsApproval: 'yes' }, /needsApproval must be a boolean or a function/],
])('a definition with %o is refused, and the error names the right member', async (wrong, words) => {
  const tool = { name: 't', description: '', inputSchema: { type: 'object' }, execute: () => 'x', ...wrong };
  await expect(checkTool(tool)).rejects.toThrow(words);
});
