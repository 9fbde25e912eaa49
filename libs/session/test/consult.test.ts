/**
 * `consultHooks`: order, chain, time limits, and failures.
 */
import type { HookRequest } from '@coxswain/ports';
import {
  BOUNDS,
  type ConsultOutcome,
  type HookAnswer,
  type HookTable,
  type Json,
  type JsonObject,
} from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { type Handler, hook, returns, silent, throws } from './fake-hooks.ts';
import { ask, call, say } from './fake-model.ts';
import { answer } from './fake-tools.ts';
import { type TestBed, testBed } from './test-bed.ts';

/** Runs one call of `read` with these hooks. */
async function run(hooks: HookTable, handlers: Readonly<Record<string, Handler>>, args: Json = {}): Promise<TestBed> {
  const bed = testBed();
  bed.hooks.registrations = hooks;
  bed.hooks.handlers = handlers;
  bed.tools = { read: { schema: { type: 'object', properties: { path: { type: 'string' } } } } };
  bed.models.answers = [ask(call('c1', 'read', args)), say('done')];
  await bed.host();
  await bed.start();
  await bed.time.advance(60_000);
  return bed;
}

async function answers(bed: TestBed): Promise<HookAnswer[]> {
  const outcomes = (await bed.records()).map(({ input }) => input);
  return (outcomes.find(({ type }) => type === 'consult_outcome') as ConsultOutcome).answers;
}
const asked = (bed: TestBed) => bed.hooks.asked.map(({ registration }) => registration.id);
const pre = (id: string, more = {}) => hook('PreToolUse', id, more);
const askedAll =
  (log: HookRequest[], raw: unknown): Handler =>
  async (request) => {
    log.push(request);
    return { status: 'returned', raw };
  };

test('hooks run in order of priority, lowest first; equal ones in the order of registration', async () => {
  const bed = await run([pre('last', { priority: 9 }), pre('a'), pre('b'), pre('first', { priority: -5 })], {});
  expect(asked(bed)).toEqual(['first', 'a', 'b', 'last']);
  expect(bed.toolSource.runs).toHaveLength(1);
});

test('only registrations of the point and of the tool are asked, with the payload of the point', async () => {
  const log: HookRequest[] = [];
  const bed = await run(
    [pre('write-only', { pattern: 'write*' }), hook('post_turn', 'turn'), pre('mine', { pattern: 'r*d' })],
    { mine: askedAll(log, undefined) },
    { path: 'a' },
  );
  expect(asked(bed)).toEqual(['mine', 'turn', 'turn']);
  expect(log[0]?.payload).toEqual({
    event: 'PreToolUse',
    session: { id: 's1' },
    persona: 'assistant',
    turn: 1,
    tool: { name: 'read', args: { path: 'a' }, call_id: 'c1' },
  });
});

test('rewrites chain: each handler sees the previous result, and the call runs with the last', async () => {
  const log: HookRequest[] = [];
  const bed = await run(
    [pre('one'), pre('two'), pre('three')],
    {
      one: askedAll(log, { args: { path: 'b' } }),
      two: askedAll(log, undefined),
      three: askedAll(log, { args: { path: 'c' } }),
    },
    { path: 'a' },
  );
  expect(log.map(({ payload }) => (payload.tool as { args: { path: string } }).args.path)).toEqual(['a', 'b', 'b']);
  expect(bed.toolSource.runs).toMatchObject([{ args: { path: 'c' } }]);
  // The journal contains the payload of each hook if it differs from the consult's.
  expect((await answers(bed)).map(({ payload }) => payload !== undefined)).toEqual([false, true, true]);
});

test('a failure ends no chain where it cannot refuse: later hooks that observe are asked', async () => {
  const observers = [hook('post_turn', 'broken'), hook('post_turn', 'audit')];
  const bed = await run(observers, { broken: throws });
  expect(asked(bed)).toEqual(['broken', 'audit', 'broken', 'audit']);
});

test('the first veto ends the chain: later hooks are not asked, and the journal says so', async () => {
  const bed = await run([pre('yes'), pre('no'), pre('never')], { no: returns({ deny: 'not today' }) });
  expect(asked(bed)).toEqual(['yes', 'no']);
  expect(await answers(bed)).toMatchObject([
    { hook: 'yes', verdict: { kind: 'no_objection' } },
    { hook: 'no', verdict: { kind: 'deny', reason: 'not today' } },
    { hook: 'never', not_run: true },
  ]);
  expect(bed.toolSource.runs).toEqual([]);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('the first hook that decides a permission ends the chain', async () => {
  const bed = testBed();
  bed.hooks.registrations = ['silent', 'asks', 'never'].map((id) => hook('permission_asked', id));
  bed.hooks.handlers = { asks: returns({ decision: 'ask' }), never: returns({ decision: 'allow' }) };
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host();
  await bed.start({ permissions: { rules: [{ tool: '*', action: 'ask' }] } });
  expect(asked(bed)).toEqual(['silent', 'asks']);
  expect(await answers(bed)).toMatchObject([{}, { verdict: { decision: 'ask' } }, { hook: 'never', not_run: true }]);
  expect(await bed.eventsOf('approval_requested')).toHaveLength(1);
});

describe('of several gates', () => {
  /** Two calls and two gates. */
  async function gates(first: unknown, second: unknown): Promise<TestBed> {
    const bed = testBed();
    bed.hooks.registrations = [hook('gate_tool_calls', 'first'), hook('gate_tool_calls', 'second')];
    bed.hooks.handlers = { first: returns(first), second: returns(second) };
    bed.models.answers = [ask(call('c1', 'read'), call('c2', 'read')), say('done')];
    await bed.host();
    await bed.start();
    return bed;
  }
  const [YES, NO] = [{ allow: true }, { allow: false }];
  const ran = (bed: TestBed) => bed.toolSource.runs.map(({ callId }) => callId);

  test('each is asked about the calls that earlier gates allowed: a call runs only if all allow it', async () => {
    const bed = await gates([NO, YES], [YES, NO]);
    expect(asked(bed)).toEqual(['first', 'second']);
    expect(ran(bed)).toEqual([]);
    expect((await bed.eventsOf('hook_vetoed')).map((event) => `${event.hook} ${event.call_id}`)).toEqual([
      'first c1',
      'second c2',
    ]);
    expect(ran(await gates([NO, YES], [YES, YES]))).toEqual(['c2']);
  });

  test.each([
    ['refuses each', [NO, NO]],
    ['says nothing', undefined],
    ['is malformed for each', [NO, 'yes']],
  ])('none is asked behind one that lets nothing through: it %s', async (_what, said) => {
    const bed = await gates(said, [YES, YES]);
    expect(asked(bed)).toEqual(['first']);
    expect((await answers(bed))[1]).toEqual({ hook: 'second', not_run: true });
    expect(ran(bed)).toEqual([]);
  });
});

describe('rewritten arguments of which only the last', () => {
  const rewriting = (...paths: unknown[]) =>
    run(
      paths.map((_, index) => pre(`h${index}`)),
      Object.fromEntries(paths.map((path, index) => [`h${index}`, returns({ args: { path } })])),
    );

  test('fit the schema run', async () => {
    expect((await rewriting(7, 'a')).toolSource.runs).toMatchObject([{ args: { path: 'a' } }]);
  });

  test('do not fit it do not run', async () => {
    expect((await rewriting('a', 7)).toolSource.runs).toEqual([]);
  });
});

test('rewritten arguments are validated again, and do not run if they do not fit', async () => {
  const bed = await run([pre('bad')], { bad: returns({ args: { path: 7 } }) });
  expect(bed.toolSource.runs).toEqual([]);
  const [ended] = await bed.eventsOf('call_ended');
  expect(ended).toMatchObject({ status: 'error', result: { detail: { code: 'invalid_call_arguments' } } });
  expect(ended?.result.content).toMatchObject([{ text: expect.stringContaining('path must be string') }]);
});

describe('a handler that', () => {
  const failures: readonly (readonly [what: string, handler: Handler, code: string])[] = [
    ['throws', throws, 'hook_threw'],
    ['never answers', silent, 'hook_timeout'],
    [
      'is not served',
      async () => ({ status: 'failed', code: 'hook_unavailable', message: 'nobody' }),
      'hook_unavailable',
    ],
    ['breaks its port', () => Promise.reject(new Error('broken')), 'hook_unavailable'],
    ['returns what JSON cannot hold', returns({ deny: 1n }), 'return_unreadable'],
    ['returns a function, as one that was not called', returns(() => ({ deny: 'x' })), 'return_unreadable'],
    ['returns what is no number', returns(Number.NaN), 'return_unreadable'],
    ['returns a symbol', returns(Symbol('deny')), 'return_unreadable'],
    ['returns what JSON would empty', returns({ args: new Map([['path', 'b']]) }), 'return_unreadable'],
    ['returns a promise that it does not await', returns({ deny: Promise.resolve('x') }), 'return_unreadable'],
    ['returns a circle', returns(circle()), 'return_unreadable'],
    ['returns too much', returns({ deny: 'x'.repeat(BOUNDS.hookPayloadMaxBytes) }), 'return_unreadable'],
  ];
  /** The hook answered, but wrongly: its refusal must not be lost by a typing error. */
  const wrongAnswers: typeof failures = [
    ['returns a misspelt key', returns({ denied: 'x' }), 'verdict_invalid'],
    ['returns a key of another point', returns({ block: true }), 'verdict_not_allowed'],
    ['returns a number', returns(7), 'verdict_invalid'],
    ['returns a list', returns([]), 'verdict_invalid'],
    ['returns a reason beyond the bound', returns({ deny: 'x'.repeat(BOUNDS.reasonMaxBytes + 1) }), 'verdict_invalid'],
    ['returns what is nested too deep', returns({ args: { path: nested(BOUNDS.jsonDepthMax) } }), 'verdict_invalid'],
    ['returns a prototype key', returns(JSON.parse('{"deny": "x", "__proto__": {}}')), 'verdict_invalid'],
  ];

  test.each([...failures, ...wrongAnswers])('%s and fails closed refuses the call', async (_what, handler, code) => {
    const bed = await run([pre('bad'), pre('next')], { bad: handler });
    expect(await answers(bed)).toMatchObject([
      { hook: 'bad', failure: { code } },
      { hook: 'next', not_run: true },
    ]);
    expect(bed.toolSource.runs).toEqual([]);
    expect(await bed.eventsOf('call_ended')).toMatchObject([{ status: 'denied', denial: { by: 'hook', hook: 'bad' } }]);
  });

  test.each(wrongAnswers)('%s refuses the call even if it fails open', async (_what, handler, code) => {
    const bed = await run([pre('bad', { on_error: 'fail_open' }), pre('next')], { bad: handler });
    expect(await answers(bed)).toMatchObject([{ failure: { code } }, { hook: 'next', not_run: true }]);
    expect(bed.toolSource.runs).toEqual([]);
  });

  test.each(failures)('%s and fails open lets it pass', async (_what, handler, code) => {
    const bed = await run([pre('bad', { on_error: 'fail_open' }), pre('next')], { bad: handler });
    expect(await answers(bed)).toMatchObject([{ failure: { code } }, { verdict: { kind: 'no_objection' } }]);
    expect(bed.toolSource.runs).toHaveLength(1);
  });

  function nested(depth: number): Json {
    return JSON.parse('['.repeat(depth) + ']'.repeat(depth)) as Json;
  }

  function circle(): object {
    const one: Record<string, unknown> = { deny: 'x' };
    one.self = one;
    return one;
  }
});

test('the registration’s own timeout applies, and aborts the handler', async () => {
  let stopped = false;
  const bed = testBed();
  bed.hooks.registrations = [pre('slow', { timeout_ms: 700 })];
  bed.hooks.handlers = {
    slow: (_request, signal) => {
      signal.addEventListener('abort', () => {
        stopped = true;
      });
      return new Promise(() => {});
    },
  };
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host();
  await bed.start();
  await bed.time.advance(699);
  expect(stopped).toBe(false);
  await bed.time.advance(1);
  expect(stopped).toBe(true);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
});

test('feedback of a handler counts until its timeout, not after', async () => {
  const bed = testBed();
  bed.hooks.registrations = [pre('slow', { timeout_ms: 700, on_error: 'fail_open' })];
  bed.hooks.handlers = {
    slow: async ({ onFeedback }) => {
      onFeedback('in time');
      await bed.time.clock().sleep(800);
      onFeedback('too late');
      return { status: 'returned', raw: undefined };
    },
  };
  bed.models.answers = [ask(call('c1', 'read')), say('done', { delayMs: 1_000 }), say('more')];
  await bed.host();
  await bed.start();
  await bed.time.advance(5_000);
  expect((await bed.eventsOf('feedback_received')).map(({ body }) => body)).toEqual(['in time']);
});

test('a payload over its bound is not sent: the registration fails, by its own policy', async () => {
  const bed = testBed();
  bed.hooks.registrations = [pre('strict')];
  bed.models.answers = [ask(call('c1', 'read', { text: 'x'.repeat(BOUNDS.hookPayloadMaxBytes) })), say('done')];
  await bed.host();
  await bed.start();
  expect(bed.hooks.asked).toEqual([]);
  expect(await answers(bed)).toMatchObject([{ failure: { code: 'hook_unavailable' } }]);
  expect(bed.toolSource.runs).toEqual([]);
});

describe('a return whose parts cannot become blobs', () => {
  const numbers = (bytes: number): Json => Array.from({ length: bytes / 2 }, () => 1);
  const rewrites = (bytes: number) => returns({ args: { list: numbers(bytes) } });

  test.each([
    ['is recorded without the raw return', 80_000, { verdict: { kind: 'rewrite_args' } }, 1],
    [
      'is a failure if its verdict does not fit into the record',
      200_000,
      { failure: { code: 'return_unreadable' } },
      0,
    ],
  ])('%s, and the run continues', async (_what, bytes, expected, runs) => {
    const bed = testBed();
    bed.hooks.registrations = [pre('large')];
    bed.hooks.handlers = { large: rewrites(bytes) };
    bed.models.answers = [ask(call('c1', 'read')), say('done')];
    await bed.host();
    await bed.start();
    const [answer] = await answers(bed);
    expect(answer).toMatchObject(expected);
    expect(answer).not.toHaveProperty('raw');
    expect(bed.toolSource.runs).toHaveLength(runs);
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });

  test('counts for all hooks of the consult together', async () => {
    const bed = testBed();
    const ids = ['a', 'b', 'c', 'd'];
    bed.hooks.registrations = ids.map((id) => pre(id, { on_error: 'fail_open' }));
    bed.hooks.handlers = Object.fromEntries(ids.map((id) => [id, rewrites(60_000)]));
    bed.models.answers = [ask(call('c1', 'read')), say('done')];
    await bed.host();
    await bed.start();
    expect((await answers(bed)).map(({ verdict, failure }) => verdict?.kind ?? failure?.code)).toEqual([
      'rewrite_args',
      ...Array(3).fill('return_unreadable'),
    ]);
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });

  test('is not recorded if the hook answered wrongly', async () => {
    const bed = testBed();
    bed.hooks.registrations = [pre('wrong')];
    bed.hooks.handlers = { wrong: returns({ list: numbers(BOUNDS.hookPayloadMaxBytes - 100) }) };
    bed.models.answers = [ask(call('c1', 'read')), say('done')];
    await bed.host();
    await bed.start();
    expect(await answers(bed)).toMatchObject([{ failure: { code: 'verdict_invalid' } }]);
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });
});

describe('a call with arguments of many small parts', () => {
  const list = (bytes: number): Json => ({ list: Array.from({ length: bytes / 2 }, () => 1) });
  const points = [
    'PreToolUse',
    'gate_tool_calls',
    'permission_asked',
    'OnApprovalRequested',
    'permission_replied',
    'PostToolUse',
  ] as const;
  const asking: JsonObject = { permissions: { rules: [{ tool: '*', action: 'ask' }] } };

  test.each(points)('can have several hooks of %s: the journal has their payload once', async (point) => {
    const bed = testBed();
    const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
    bed.hooks.registrations = ids.map((id) => hook(point, id));
    if (point === 'gate_tool_calls')
      bed.hooks.handlers = Object.fromEntries(ids.map((id) => [id, returns([{ allow: true }])]));
    bed.models.answers = [ask(call('c1', 'read', list(100_000))), say('done')];
    await bed.host();
    await bed.start(asking);
    await bed.send('approve', { call_id: 'c1', decision: 'allow' });
    await bed.time.advance(20);
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
    expect(asked(bed)).toEqual(ids);
    const [first, ...others] = await bed.eventsOf('hook_call');
    expect(JSON.stringify(first?.payload)).toContain(JSON.stringify(list(100_000)));
    for (const other of others) expect(other).not.toHaveProperty('payload');
    for (const { payload } of bed.hooks.asked) expect(payload).toEqual(first?.payload);
  });
});

describe('a run that is cancelled while a hook is asked', () => {
  test('ends at once; the call is not run', async () => {
    const bed = testBed();
    bed.hooks.registrations = [pre('slow', { timeout_ms: 600_000 }), pre('behind')];
    bed.hooks.handlers = { slow: silent };
    bed.models.answers = [ask(call('c1', 'read')), say('done')];
    await bed.host();
    await bed.start();
    await bed.send('cancel');
    expect((await bed.lines()).at(-1)).toBe('agent_end cancelled');
    const message = 'the run ended before the hook answered';
    expect(await answers(bed)).toMatchObject([{ failure: { message } }, { hook: 'behind', not_run: true }]);
    expect(bed.toolSource.runs).toEqual([]);
  });
});

test('a hook that checks a result is stopped with the reason of the cancel of this call', async () => {
  const bed = await run([hook('PostToolUse', 'slow', { timeout_ms: 600_000 })], { slow: silent });
  await bed.send('cancel_call', { call_id: 'c1', reason: 'too slow' });
  expect(await answers(bed)).toMatchObject([{ failure: { message: 'stopped before the hook answered: too slow' } }]);
});

describe('after a crash', () => {
  test('an open consult is repeated, and the batch continues', async () => {
    const bed = testBed();
    bed.hooks.registrations = [pre('slow', { timeout_ms: 600_000 })];
    bed.hooks.handlers = { slow: silent };
    bed.models.answers = [ask(call('c1', 'read')), say('done')];
    const first = await bed.host();
    await bed.start();
    first.abandon();
    bed.hooks.handlers = {};
    await bed.host();
    expect(asked(bed)).toEqual(['slow', 'slow']);
    expect(bed.toolSource.runs).toHaveLength(1);
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });

  test('a failure of a repeated consult counts by the recorded policy: the next hook is asked, and refuses', async () => {
    const bed = testBed();
    bed.hooks.registrations = [pre('slow', { on_error: 'fail_open' }), pre('strict')];
    bed.hooks.handlers = { slow: silent, strict: returns({ deny: 'no' }) };
    bed.models.answers = [ask(call('c1', 'read')), say('done')];
    const first = await bed.host();
    await bed.start();
    bed.hooks.change([pre('slow', { on_error: 'fail_closed' }), pre('strict')]);
    await bed.time.settle();
    first.abandon();
    bed.hooks.handlers = { ...bed.hooks.handlers, slow: throws };
    await bed.host();
    expect(asked(bed)).toEqual(['slow', 'slow', 'strict']);
    expect(bed.toolSource.runs).toEqual([]);
  });
});

describe('every point is consulted in its place', () => {
  test('and a result is rewritten before the model sees it', async () => {
    const all = [
      'session_start',
      'user_prompt_submit',
      'PreToolUse',
      'gate_tool_calls',
      'permission_asked',
      'PostToolUse',
      'post_turn',
      'file_edited',
      'session_error',
      'session_end',
      'pre_finish',
      'on_unsettled_detected',
      'post_finish',
    ] as const;
    const bed = testBed();
    bed.hooks.registrations = all.map((point) => hook(point, point));
    bed.hooks.handlers = {
      gate_tool_calls: returns([{ allow: true }]),
      permission_asked: returns({ decision: 'allow' }),
      PostToolUse: returns('redacted'),
    };
    const edits = async () => ({ ...answer('read ran'), edited: ['src/b.ts', 'src/a.ts', 'src/b.ts'] });
    bed.tools = { read: { run: edits } };
    bed.models.answers = [ask(call('c1', 'read')), say('done')];
    await bed.host();
    await bed.start({ permissions: { rules: [{ tool: '*', action: 'ask' }] } });
    const turn = ['post_turn', 'file_edited', 'file_edited', 'post_turn'];
    // Nothing failed and no message is queued, so two points do not apply.
    const end = ['session_end', 'pre_finish', 'post_finish'];
    expect(asked(bed)).toEqual([...all.slice(0, 6), ...turn, ...end]);
    expect(bed.hooks.asked.flatMap(({ payload }) => payload.path ?? [])).toEqual(['src/a.ts', 'src/b.ts']);
    expect(JSON.stringify(bed.models.requests.at(-1)?.messages)).toContain('redacted');
    expect(JSON.stringify(bed.models.requests.at(-1)?.messages)).not.toContain('read ran');
  });

  test('and a blocked prompt reaches no model', async () => {
    const bed = testBed();
    bed.hooks.registrations = [hook('user_prompt_submit', 'guard')];
    bed.hooks.handlers = { guard: returns({ block: true, reason: 'secrets' }) };
    await bed.host();
    await bed.start();
    expect(bed.models.requests).toEqual([]);
    expect((await bed.lines()).at(-1)).toBe('agent_end user_prompt_submit_blocked');
  });

  test('and a gate that does not answer denies', async () => {
    const bed = testBed();
    bed.hooks.registrations = [hook('gate_tool_calls', 'gate')];
    bed.models.answers = [ask(call('c1', 'read'), call('c2', 'read')), say('done')];
    await bed.host();
    await bed.start();
    expect((await bed.eventsOf('call_ended')).map(({ status }) => status)).toEqual(['denied', 'denied']);
  });
});
