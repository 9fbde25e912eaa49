/** Registering handlers in this process: what is taken, what is refused, and what a handler is given. */
import type { HookReply } from '@coxswain/ports';
import { BOUNDS, type HookContext, type HookPoint, type HookRegistration, type JsonObject } from '@coxswain/protocol';
import { describe, expect, test, vi } from 'vitest';
import { createHookRegistry, HookRegistrationError } from '../src/mod.ts';
import { askFirst, payloadOf, ref, toolPayload, userMessage } from './ask.ts';

const nothing = () => undefined;

describe('each surface registers what it says', () => {
  const only = (registrations: readonly HookRegistration[]) =>
    registrations.map(({ timeout_ms: _t, on_error: _e, priority: _p, ...rest }) => rest);

  test('a tool hook stands at one point, or at both under one id', () => {
    const registry = createHookRegistry();
    registry.registerToolHook({ pattern: 'run_*', pre: nothing, post: nothing });
    registry.registerToolHook({ pattern: 'rm', deny: 'never' });
    registry.registerToolHook({ pattern: '*', maxOutput: 4_000 });
    expect(only(registry.table())).toEqual([
      { id: 'code-tool-1', point: 'PreToolUse', pattern: 'run_*' },
      { id: 'code-tool-1', point: 'PostToolUse', pattern: 'run_*' },
      { id: 'code-tool-2', point: 'PreToolUse', pattern: 'rm', deny: 'never' },
      { id: 'code-tool-3', point: 'PostToolUse', pattern: '*', max_output: 4_000, no_handler: true },
    ]);
  });

  test('persona, step, session and checkpoint hooks', () => {
    const registry = createHookRegistry({ name: 'policy' });
    registry.registerPersonaHook('rev*', 'OnBudgetThreshold(80)', nothing);
    registry.registerStepHook('*', 'draft', 'pre_step', nothing);
    registry.registerSessionHook('post_turn', nothing);
    registry.registerSessionHook('FileEdited', '*.ts', nothing, { id: 'lint', priority: 5, timeoutMs: 9 });
    registry.registerCheckpointHook(['loop_exit', 'iteration_end'], nothing);
    registry.registerCheckpointHook(undefined, nothing);
    expect(registry.table()).toMatchObject([
      { id: 'policy-OnBudgetThreshold-1', point: 'OnBudgetThreshold', pct: 80, persona: 'rev*' },
      { id: 'policy-pre_step-1', point: 'PreStep', persona: '*', step: 'draft' },
      { id: 'policy-post_turn-1', point: 'post_turn', pattern: '*' },
      { id: 'lint', point: 'file_edited', pattern: '*.ts', priority: 5, timeout_ms: 9 },
      { point: 'loop_checkpoint', pattern: 'kind =~ "^(iteration_end|loop_exit)$"' },
      { point: 'loop_checkpoint', pattern: '*' },
    ]);
  });

  // Nobody fires them yet: what is registered for them waits in the table, checked like everything else.
  test.each([
    ['PreStep', 'pre_step'],
    ['PostStep', 'post_step'],
    ['OnApprovalRequested', 'on_approval_requested'],
    ['OnHandoffEmitted', 'on_handoff_emitted'],
    ['OnPersonaPaused', 'on_persona_paused'],
    ['OnPersonaResumed', 'on_persona_resumed'],
  ] as const)('%s of personas, of steps and among other definitions, in either spelling', async (point, other) => {
    const registry = createHookRegistry();
    registry.registerPersonaHook('rev*', point, nothing);
    registry.registerStepHook('*', 'draft', other, nothing, { priority: 2 });
    registry.registerAll({ [other]: { pattern: 'reviewer.*', handler: nothing } });
    expect(registry.table()).toMatchObject([
      { point, persona: 'rev*' },
      { point, persona: '*', step: 'draft', priority: 2 },
      { point, pattern: 'reviewer.*' },
    ]);
    expect(await askFirst(registry, point)).toEqual({ status: 'returned', raw: undefined });
    expect(() => registry.registerSessionHook(point as never, nothing as never)).toThrow(/surface/);
    expect(() => registry.registerPersonaHook('(', point, nothing)).toThrow(HookRegistrationError);
  });

  test('what is taken back leaves the table, and who listens is told of each change once', () => {
    const registry = createHookRegistry();
    const changed = vi.fn();
    const end = registry.onChange?.(changed);
    const unregister = registry.registerSessionHook('post_turn', nothing);
    expect(registry.table()).toHaveLength(1);
    unregister();
    unregister();
    expect(registry.table()).toEqual([]);
    expect(changed).toHaveBeenCalledTimes(2);
    end?.();
    registry.registerAll({ post_turn: nothing, session_idle: [nothing, { handler: nothing, onError: 'fail_open' }] });
    expect(changed).toHaveBeenCalledTimes(2);
    expect(registry.table().map(({ id, on_error }) => `${id} ${on_error}`)).toEqual([
      'code-post_turn-2 fail_closed',
      'code-session_idle-1 fail_closed',
      'code-session_idle-2 fail_open',
    ]);
  });
});

describe('what is wrong is refused when it is registered', () => {
  const refused = (register: () => unknown): Pick<HookRegistrationError, 'code' | 'field'> => {
    try {
      register();
    } catch (error) {
      expect(error).toBeInstanceOf(HookRegistrationError);
      const { code, field } = error as HookRegistrationError;
      return { code, field };
    }
    throw new Error('it was taken');
  };
  const registry = () => createHookRegistry();
  // What the compiler refuses comes from JavaScript all the same.
  const loose = () => createHookRegistry() as unknown as Record<string, (...args: unknown[]) => unknown>;

  test.each<[string, () => unknown, string, string]>([
    [
      'a point that there is not',
      () => loose().registerSessionHook?.('post_trun', nothing),
      'unknown_hook_point',
      'point',
    ],
    [
      'a point of another surface',
      () => loose().registerSessionHook?.('PreToolUse', nothing),
      'invalid_field',
      'surface',
    ],
    [
      'a pattern that is none',
      () => registry().registerToolHook({ pattern: 'a b', pre: nothing }),
      'invalid_pattern',
      'pattern',
    ],
    [
      'an expression that is none',
      () => registry().registerSessionHook('user_prompt_submit', 'prompt =~ "("', nothing),
      'invalid_pattern',
      'pattern',
    ],
    [
      'a persona that is no glob',
      () => registry().registerPersonaHook('a|b', 'PreStep', nothing),
      'invalid_pattern',
      'persona',
    ],
    [
      'a seam that there is not',
      () => registry().registerCheckpointHook('loop_end', nothing),
      'invalid_pattern',
      'kinds',
    ],
    ['no function', () => loose().registerSessionHook?.('post_turn', { handler: nothing }), 'invalid_field', 'handler'],
    ...['source', 'unavailable', 'no_handler', 'noHandler', 'point', 'surface'].map(
      (field): [string, () => unknown, string, string] => [
        `a tool hook with the field ${field}, which nobody writes`,
        () => registry().registerToolHook({ pattern: '*', pre: nothing, [field]: 'x' } as never),
        'invalid_field',
        field,
      ],
    ),
    ['a tool hook that does nothing', () => registry().registerToolHook({ pattern: '*' }), 'invalid_field', 'pre'],
    [
      'deny beside pre',
      () => registry().registerToolHook({ pattern: '*', deny: 'no', pre: nothing }),
      'invalid_field',
      'deny',
    ],
    [
      'an answer beside the handler that would give it',
      () => registry().registerAll({ post_turn: { handler: nothing, returns: true } }),
      'invalid_field',
      'returns',
    ],
    [
      'an answer that means nothing there',
      () => registry().registerAll({ post_turn: { returns: { block: true } } }),
      'invalid_field',
      'returns',
    ],
    [
      'a misspelt setting',
      () => loose().registerSessionHook?.('post_turn', nothing, { timeout: 5 }),
      'unknown_field',
      'timeout',
    ],
    [
      'a setting in the spelling of the wire',
      () => loose().registerToolHook?.({ pattern: '*', max_output: 5 }),
      'unknown_field',
      'max_output',
    ],
    [
      'a time-out beyond the bound',
      () => registry().registerSessionHook('post_turn', nothing, { timeoutMs: BOUNDS.hookTimeoutMaxMs + 1 }),
      'invalid_field',
      'timeoutMs',
    ],
    [
      'an id that no subject can hold',
      () => registry().registerSessionHook('post_turn', nothing, { id: 'a.b' }),
      'invalid_field',
      'id',
    ],
    ['a definition that is none', () => loose().registerAll?.({ post_turn: 'lint' }), 'invalid_field', 'post_turn'],
    [
      'a definition that calls itself a manifest',
      () => loose().registerAll?.({ post_turn: { handler: nothing, source: 'manifest' } }),
      'invalid_field',
      'source',
    ],
  ])('%s', (_what, register, code, field) => {
    expect(refused(register)).toEqual({ code, field });
  });

  test('one id twice at one point', () => {
    const one = registry();
    one.registerSessionHook('post_turn', nothing, { id: 'mine' });
    expect(refused(() => one.registerSessionHook('post_turn', nothing, { id: 'mine' })).field).toBe('id');
    one.registerSessionHook('session_idle', nothing, { id: 'mine' });
  });

  test('more than a session may see; and of several that are declared together none stays when one is refused', () => {
    const full = registry();
    full.registerAll({ post_turn: Array.from({ length: BOUNDS.hooksMax }, () => nothing) });
    expect(refused(() => full.registerSessionHook('post_turn', nothing)).field).toBe('id');
    const half = registry();
    refused(() => half.registerAll({ post_turn: nothing, PreToolUse: { pattern: '(', handler: nothing } }));
    expect(half.table()).toEqual([]);
  });
});

describe('a handler is given', () => {
  async function given(point: HookPoint, payload: JsonObject): Promise<{ payload: unknown; context: HookContext }> {
    const seen: { payload: unknown; context: HookContext }[] = [];
    const registry = createHookRegistry();
    registry.register({ point, id: 'h' }, (shown, context) => void seen.push({ payload: shown, context }));
    expect(await askFirst(registry, point, payload)).toEqual({ status: 'returned', raw: undefined });
    return seen[0] as (typeof seen)[0];
  }

  test('the payload, and where it is asked', async () => {
    const { payload, context } = await given('PreToolUse', toolPayload('PreToolUse'));
    const call = { name: 'run_command', args: { command: 'ls' }, callId: 'c1' };
    expect(payload).toEqual(payloadOf('PreToolUse', { tool: call }));
    expect(context).toMatchObject({
      hook: 'h',
      tenant: 'default',
      session: { id: 's1' },
      persona: 'assistant',
      turn: 3,
      step: undefined,
      call,
      idempotencyKey: 'default.s1.7-0.h',
    });
    expect(Object.isFrozen(context)).toBe(true);
    expect(Object.isFrozen(context.session)).toBe(true);
  });

  test('the transcript when it asks for it, as a copy; and the messages of a request', async () => {
    const made = vi.fn(() => [userMessage('hello')]);
    const seen: unknown[] = [];
    const registry = createHookRegistry();
    registry.registerSessionHook('post_turn', async (_payload, { transcript }) => void seen.push(await transcript()));
    registry.registerSessionHook('session_idle', nothing);
    registry.registerSessionHook('transform_context', async (_p, { messages }) => ({ messages: await messages() }));
    await askFirst(registry, 'session_idle', payloadOf('session_idle'), { transcript: made });
    expect(made).not.toHaveBeenCalled();
    await askFirst(registry, 'post_turn', payloadOf('post_turn'), { transcript: made });
    expect(made).toHaveBeenCalledTimes(1);
    expect(seen).toEqual([[userMessage('hello')]]);
    const shown = { messages: [userMessage('one'), userMessage('two')] };
    expect(await askFirst(registry, 'transform_context', payloadOf('transform_context'), shown)).toEqual({
      status: 'returned',
      raw: shown,
    });
  });

  test('a signal, and a way to tell the model something', async () => {
    const told: string[] = [];
    const abort = new AbortController();
    const registry = createHookRegistry();
    registry.registerSessionHook('post_turn', (_payload, { signal, feedback }) => {
      for (let i = 0; i < BOUNDS.feedbackPendingMax + 5; i++) feedback(`${signal.aborted} ${i}`);
    });
    await askFirst(registry, 'post_turn', payloadOf('post_turn'), {
      onFeedback: (text) => told.push(text),
      signal: abort.signal,
    });
    expect(told).toHaveLength(BOUNDS.feedbackPendingMax);
    expect(told[0]).toBe('false 0');
  });
});

describe('what a handler does to itself harms nobody else', () => {
  const pre = (handler: (payload: never, context: never) => unknown): Promise<HookReply> => {
    const registry = createHookRegistry();
    registry.register({ point: 'PreToolUse' }, handler as never);
    return askFirst(registry, 'PreToolUse', toolPayload('PreToolUse'));
  };

  test.each<[string, unknown, string]>([
    ['an error', new Error('no'), 'no'],
    ['a text', 'no', 'no'],
    ['nothing', undefined, 'undefined'],
    ['an error without words', new RangeError(), 'RangeError'],
    [
      'what cannot be told',
      {
        toString: () => {
          throw new Error('deeper');
        },
      },
      'it threw a value that cannot be converted to text',
    ],
    ['a long story', 'x'.repeat(10_000), `${'x'.repeat(500)}…`],
  ])('it throws %s', async (_what, thrown, message) => {
    const failed = { status: 'failed', code: 'hook_threw', message };
    expect(
      await pre(() => {
        throw thrown;
      }),
    ).toEqual(failed);
    expect(await pre(() => Promise.reject(thrown))).toEqual(failed);
  });

  test('it writes into its payload, its context or the transcript: that is an error of its own', async () => {
    const payload = toolPayload('PreToolUse', { deep: { list: [1] } });
    const before = structuredClone(payload);
    const transcript = [userMessage('hello')];
    const registry = createHookRegistry();
    for (const write of [
      (shown: { tool: { args: { deep: { list: number[] } } } }) => shown.tool.args.deep.list.push(2),
      (_shown: unknown, context: { session: { id: string } }) => (context.session.id = 'another'),
      async (_shown: unknown, context: HookContext) => ((await context.transcript()) as unknown[]).push('x'),
    ]) {
      const unregister = registry.register({ point: 'PreToolUse' }, write as never);
      const reply = await askFirst(registry, 'PreToolUse', payload, { transcript: () => transcript });
      expect(reply).toMatchObject({ status: 'failed', code: 'hook_threw' });
      unregister();
    }
    expect(payload).toEqual(before);
    expect(transcript).toEqual([userMessage('hello')]);
    expect(Object.isFrozen(payload)).toBe(false);
  });

  test('it answers twice: the first answer stands', async () => {
    const reply = await pre(() => ({
      // biome-ignore lint/suspicious/noThenProperty: a handler may return whatever it likes
      then: (settle: (value: unknown) => void) => {
        settle({ deny: 'first' });
        settle({ args: {} });
      },
    }));
    expect(reply).toEqual({ status: 'returned', raw: { deny: 'first' } });
  });

  test('it shares its id with the handler of another point: each is asked at its own', async () => {
    const registry = createHookRegistry();
    registry.registerToolHook({ pattern: '*', pre: () => ({ deny: 'before' }), post: () => 'after' });
    expect(await askFirst(registry, 'PreToolUse', toolPayload('PreToolUse'))).toMatchObject({
      raw: { deny: 'before' },
    });
    expect(await askFirst(registry, 'PostToolUse', toolPayload('PostToolUse'))).toMatchObject({ raw: 'after' });
  });

  test('it was taken back since: nobody is asked', async () => {
    const registry = createHookRegistry();
    const unregister = registry.registerSessionHook('post_turn', nothing);
    const [registration] = registry.table();
    unregister();
    registry.registerSessionHook('post_turn', nothing, { id: 'other' });
    const request = {
      ref,
      effectId: '1-0',
      registration: registration as HookRegistration,
      payload: payloadOf('post_turn'),
    };
    const more = { transcript: () => [], onFeedback: () => undefined };
    expect(await registry.ask({ ...request, ...more }, new AbortController().signal)).toMatchObject({
      status: 'failed',
      code: 'hook_unavailable',
    });
  });
});
