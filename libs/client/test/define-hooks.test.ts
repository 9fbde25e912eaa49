/**
 * Handlers are held to their points by the compiler. Each line under a `@ts-expect-error` is one that must not compile:
 * `npm run typecheck` fails where it does.
 */
import { createHookRegistry } from '@coxswain/adapter-hooks';
import { expect, expectTypeOf, test } from 'vitest';
import { defineHooks } from '../src/mod.ts';

// biome-ignore lint/suspicious/noThenProperty: the return protocol has it, and it is no function
const remindThen = <Inner>(inner: Inner) => ({ reminder: { body: 'asked' }, then: inner });

test('a module of handlers is registered as it stands', () => {
  const hooks = defineHooks({
    user_prompt_submit: ({ prompt, origin }) => (prompt.includes('sk-') ? { block: true, reason: origin } : true),
    PreToolUse: [
      { pattern: 'run_*', handler: ({ tool }, { call }) => ({ args: { ...call?.args, name: tool.name } }) },
      { pattern: 'rm', deny: 'never' },
    ],
    post_tool_use: { maxOutput: 4_000 },
    GateToolCalls: ({ calls }) => calls.map(({ name }) => ({ allow: name !== 'rm' })),
    transform_context: async (_payload, { messages }) => ({ messages: (await messages()).slice(-2) }),
    permission_asked: () => remindThen({ decision: 'allow' as const }),
    file_edited: ({ path }) => ({ job: { status: 'queued', jobId: path } }),
    'OnBudgetThreshold(80)': ({ budgetPct, usage }) => ({ body: `${budgetPct} of ${usage.limit}` }),
    session_end: () => {},
    post_turn: async () => {},
  });
  const registry = createHookRegistry({ name: 'policy' });
  registry.registerAll(hooks);
  expect(registry.table().map(({ id }) => id)).toEqual([
    'policy-user_prompt_submit-1',
    'policy-PreToolUse-1',
    'policy-PreToolUse-2',
    'policy-post_tool_use-1',
    'policy-GateToolCalls-1',
    'policy-transform_context-1',
    'policy-permission_asked-1',
    'policy-file_edited-1',
    'policy-OnBudgetThreshold-1',
    'policy-session_end-1',
    'policy-post_turn-1',
  ]);
});

test('what has no meaning at its point does not compile', () => {
  // @ts-expect-error -- there is no such point
  defineHooks({ post_trun: () => undefined });
  // @ts-expect-error -- nobody can deny what has happened
  defineHooks({ post_turn: () => ({ deny: 'no' }) });
  // @ts-expect-error -- the same in the other spelling
  defineHooks({ PostTurn: () => ({ deny: 'no' }) });
  // @ts-expect-error -- a gate answers for each call
  defineHooks({ gate_tool_calls: () => ({ allow: true }) });
  // @ts-expect-error -- a permission is allowed, denied or asked
  defineHooks({ permission_asked: () => ({ decision: 'maybe' }) });
  // @ts-expect-error -- also behind a reminder
  defineHooks({ permission_asked: () => remindThen({ block: true }) });
  // @ts-expect-error -- also from a promise
  defineHooks({ user_prompt_submit: async () => ({ block: 'yes' }) });
  // @ts-expect-error -- a job goes on elsewhere: nobody waits for it where something is decided
  defineHooks({ PreToolUse: () => ({ job: { status: 'queued', jobId: 'x' } }) });
  // @ts-expect-error -- a number is no answer
  defineHooks({ session_end: () => 4 });
  // @ts-expect-error -- nor is it in the handler of an entry
  defineHooks({ session_end: { handler: () => 4 } });
  // @ts-expect-error -- there is no such setting
  defineHooks({ session_end: { timeout: 4, handler: () => undefined } });
  // @ts-expect-error -- only the host knows whether something is unavailable
  defineHooks({ session_end: { unavailable: true, handler: () => undefined } });

  // @ts-expect-error -- the payload of a turn has no prompt
  defineHooks({ post_turn: ({ prompt }) => void prompt });
  // @ts-expect-error -- nor has the one of an edited file a tool
  defineHooks({ FileEdited: [({ tool }) => void tool] });
  defineHooks({
    user_prompt_submit: (payload) => {
      // @ts-expect-error -- a payload is read-only
      payload.prompt = 'another';
    },
    post_turn: (_payload, context) => {
      // @ts-expect-error -- messages are shown at transform_context only
      void context.messages;
      // @ts-expect-error -- read-only as well
      context.session.id = 'another';
    },
  });
  expect(() => createHookRegistry().registerAll({ post_trun: () => undefined } as never)).toThrow(/post_trun/);
});

test('a key that means nothing does not compile, however optional those are that do', () => {
  // @ts-expect-error -- misspelt
  defineHooks({ user_prompt_submit: () => ({ block: true, reson: 'no' }) });
  // @ts-expect-error -- also from a promise
  defineHooks({ user_prompt_submit: async () => ({ block: true, reson: 'no' }) });
  // @ts-expect-error -- also where it is one return of several
  defineHooks({ user_prompt_submit: ({ prompt }) => (prompt === '' ? { block: true, reson: 'no' } : true) });
  defineHooks({
    // @ts-expect-error -- also with return statements
    user_prompt_submit: ({ prompt }) => {
      if (prompt === '') return { block: true, reson: 'empty' };
      return undefined;
    },
  });
  // @ts-expect-error -- in the other spelling of the point
  defineHooks({ UserPromptSubmit: () => ({ block: true, reson: 'no' }) });
  // @ts-expect-error -- of the handler of an entry
  defineHooks({ PreToolUse: { pattern: 'rm', handler: () => ({ deny: 'no', reason: 'never' }) } });
  // @ts-expect-error -- of one in a list
  defineHooks({ PreToolUse: [{ pattern: 'rm', deny: 'no' }, () => ({ deny: 'no', reason: 'never' })] });
  // @ts-expect-error -- two answers are none
  defineHooks({ PreToolUse: () => ({ deny: 'no', args: {} }) });
  // @ts-expect-error -- in a reminder
  defineHooks({ post_turn: () => ({ reminder: { body: 'mind', ttl: 3 } }) });
  // @ts-expect-error -- in one of several
  defineHooks({ post_turn: () => [{ reminder: { body: 'mind' } }, { reminder: { body: 'this', ttl: 3 } }] });
  // @ts-expect-error -- behind one
  defineHooks({ permission_asked: () => remindThen({ decision: 'allow' as const, reson: 'why' }) });
  // @ts-expect-error -- in a receipt
  defineHooks({ file_edited: ({ path }) => ({ job: { status: 'queued', jobId: path, paths: [path] } }) });
  // @ts-expect-error -- in the answer for one call
  defineHooks({ gate_tool_calls: ({ calls }) => calls.map(() => ({ allow: true, reson: 'why' })) });
  // @ts-expect-error -- at a point with a percentage
  defineHooks({ 'OnBudgetThreshold(80)': () => ({ body: 'mind', tag: ['budget'] }) });
  // @ts-expect-error -- in the settings of an entry
  defineHooks({ post_turn: { patern: '*', handler: () => undefined } });
  // @ts-expect-error -- in the settings of an entry of a list
  defineHooks({ PreToolUse: [{ patern: 'rm', deny: 'no' }] });
  // @ts-expect-error -- a point that there is not, beside one that there is
  defineHooks({ post_turn: () => undefined, post_trun: () => undefined });
});

test('objects that a handler returns in turn are told apart', () => {
  defineHooks({
    PreToolUse: ({ tool }) => (tool.name === 'rm' ? { deny: 'no' } : { args: { path: 'a', more: { deep: [1] } } }),
    PostToolUse: ({ isError }) => {
      if (isError) return { isError: false, result: 'mended' };
      return isError === undefined ? 'cut' : { result: 'cut' };
    },
    PostStep: () => ({ output: { any: { thing: 'goes' } } }),
    session_end: ({ turn }) => (turn > 3 ? { job: { status: 'queued', jobId: 'j' } } : { body: 'mind', tags: ['end'] }),
  });
});

test('what handlers are given has the types of their points', () => {
  defineHooks({
    UserPromptSubmit: ({ origin }) => {
      expectTypeOf(origin).toEqualTypeOf<'prompt' | 'followup' | 'steer'>();
    },
    pre_tool_use: ({ tool }) => {
      expectTypeOf(tool.callId).toEqualTypeOf<string>();
    },
    PostToolUse: ({ isError, result }) => {
      expectTypeOf(isError).toEqualTypeOf<boolean>();
      expectTypeOf(result.content.length).toEqualTypeOf<number>();
    },
  });
});

test('the surfaces of a registry are typed by their points as well', () => {
  const registry = createHookRegistry();
  registry.registerToolHook({ pattern: '*', pre: ({ tool }) => ({ deny: tool.name }), post: () => 'cut' });
  registry.registerSessionHook('user_prompt_submit', 'origin == "steer"', ({ prompt }) => prompt === '');
  registry.registerPersonaHook('*', 'on_budget_threshold', ({ budgetPct }) => ({ body: `${budgetPct}` }));
  registry.registerCheckpointHook('*', ({ kind }) => ({ body: kind }));
  // @ts-expect-error -- a result is rewritten after the call, not before
  registry.registerToolHook({ pattern: '*', pre: () => 'cut' });
  // @ts-expect-error -- nobody can block what has happened
  registry.registerSessionHook('post_turn', () => false);
  // @ts-expect-error -- misspelt
  registry.registerToolHook({ pattern: '*', pre: () => ({ deny: 'no', reson: 'never' }) });
  // @ts-expect-error -- misspelt
  registry.registerSessionHook('user_prompt_submit', async () => ({ block: true, reson: 'no' }));
  // @ts-expect-error -- misspelt
  registry.registerSessionHook('user_prompt_submit', '*', () => ({ block: true, reson: 'no' }));
  // @ts-expect-error -- misspelt
  registry.registerPersonaHook('*', 'OnHandoffEmitted', () => ({ deny: 'no', reson: 'never' }));
  // @ts-expect-error -- misspelt
  registry.registerStepHook('*', 'draft', 'PostStep', () => ({ output: 'x', reson: 'never' }));
  // @ts-expect-error -- misspelt
  registry.registerCheckpointHook('*', () => ({ body: 'mind', ttl: 3 }));
  // @ts-expect-error -- a point of tools is no event of a session
  expect(() => registry.registerSessionHook('PreToolUse', () => undefined)).toThrow(/surface/);
  expect(registry.table()).toHaveLength(13);
});
