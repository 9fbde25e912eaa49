/**
 * Hooks of personas: valid definitions, their registrations in sessions, and rejections with a path.
 */
import { describe, expect, test } from 'vitest';
import {
  HookAnnouncement,
  HookRegistration,
  HookTable,
  inCallOrder,
  Persona,
  pathText,
  readPersona,
  readPersonaHooks,
  readRegistration,
} from '../src/mod.ts';

const hooksOf = (persona: object, version = 'v1') => {
  const read = readPersonaHooks(Persona.parse({ name: 'reviewer', ...persona }), version);
  if ('problem' in read) throw new Error(`${pathText(read.problem.path)}: ${read.problem.words}`);
  return read.hooks;
};
/** The problem, with its path. */
const refusal = (persona: object): string => {
  const read = readPersona({ name: 'reviewer', ...persona });
  if (read.ok) return 'ok';
  const [{ kind, path, words }] = read.problems;
  return `${kind === 'unknown_key' ? 'unknown ' : ''}${pathText(path)}: ${words}`;
};
const hook = (more: object) => ({ hooks: [more] });

test('a long event name is rejected in linear time', () => {
  // Quadratic work over this name would take minutes.
  expect(refusal(hook({ event: `${'!'.repeat(400_000)}\n!`, deny: 'no' }))).toMatch(/event/);
});

describe('the registrations of sessions', () => {
  test('a hook is registered as from a manifest, with the persona’s name as prefix, for its sessions and its version', () => {
    const [first, second] = hooksOf({
      hooks: [
        { event: 'pre_tool_use', pattern: 'run_*', deny: 'not here' },
        {
          event: 'post_turn',
          handler: './watch.ts#turn',
          id: 'watch',
          priority: 3,
          timeout_ms: 9,
          on_error: 'fail_open',
        },
      ],
    });
    expect(first).toEqual({
      registration: {
        id: 'reviewer:pre_tool_use-1',
        point: 'PreToolUse',
        pattern: 'run_*',
        persona: 'reviewer',
        persona_version: 'v1',
        priority: 0,
        timeout_ms: 5_000,
        on_error: 'fail_closed',
        deny: 'not here',
      },
      handler: undefined,
      path: ['hooks', 0],
      handlerPath: ['hooks', 0, 'handler'],
    });
    expect(second).toMatchObject({
      registration: { id: 'reviewer:watch', point: 'post_turn', priority: 3, timeout_ms: 9, on_error: 'fail_open' },
      handler: './watch.ts#turn',
    });
  });

  test('every kind is accepted: deny, max_output, returns, handler; at seams, steps and percentages', () => {
    const hooks = hooksOf({
      steps: [{ name: 'draft', prompt: 'Draft.' }],
      hooks: [
        { event: 'PreToolUse', pattern: 'rm', deny: 'never' },
        { event: 'PostToolUse', max_output: 100 },
        { event: 'PostToolUse', max_output: 100, returns: 'nothing to see' },
        { event: 'PostToolUse', max_output: 100, handler: './a.ts' },
        { event: 'session_start', returns: { body: 'Read AGENTS.md first.' } },
        { event: 'loop_checkpoint', kinds: ['iteration_end'], handler: './a.ts' },
        { event: 'PreStep', step: 'dra*', returns: { args: { prompt: 'Draft it twice.' } } },
        { event: 'OnBudgetThreshold(80)', returns: { body: 'Come to an end.' } },
      ],
    });
    const seen = hooks.map(({ registration: { no_handler, pattern, pct, step, returns } }) => [
      no_handler,
      pattern,
      pct,
      step,
      returns,
    ]);
    expect(seen).toEqual([
      [undefined, 'rm', undefined, undefined, undefined],
      [true, '*', undefined, undefined, undefined],
      [undefined, '*', undefined, undefined, 'nothing to see'],
      [undefined, '*', undefined, undefined, undefined],
      [undefined, '*', undefined, undefined, { body: 'Read AGENTS.md first.' }],
      [undefined, 'kind == "iteration_end"', undefined, undefined, undefined],
      [undefined, '*', undefined, 'dra*', { args: { prompt: 'Draft it twice.' } }],
      [undefined, '*', 80, undefined, { body: 'Come to an end.' }],
    ]);
  });

  test('on_finish is the first hook of post_finish, whatever the priority of others', () => {
    const more = { hooks: [{ event: 'post_finish', handler: './a.ts#b', priority: -1_000 }] };
    const table = (on_finish: unknown) =>
      inCallOrder(hooksOf({ ...more, on_finish }).map(({ registration }) => registration)).map(({ id }) => id);
    const order = ['reviewer:on_finish', 'reviewer:post_finish-1'];
    expect(table('./a.ts#done')).toEqual(order);
    expect(hooksOf({ on_finish: './a.ts#done' })[0]?.handlerPath).toEqual(['on_finish']);
    expect(table({ handler: './a.ts#done', timeout_ms: 60_000 })).toEqual(order);
    expect(table({ pattern: 'stop_reason == "error"', returns: { body: 'The last run has failed.' } })).toEqual(order);
  });

  test('a persona’s hooks are called before all others, whose order is unchanged', () => {
    const others = [
      HookRegistration.parse({ id: 'early', point: 'PreToolUse', priority: -1_000 }),
      HookRegistration.parse({ id: 'late', point: 'PreToolUse' }),
    ];
    const own = hooksOf(hook({ event: 'PreToolUse', handler: './a.ts', priority: 1_000 }));
    const table = inCallOrder([...others, ...own.map(({ registration }) => registration)]);
    expect(table.map(({ id }) => id)).toEqual(['reviewer:PreToolUse-1', 'early', 'late']);
    expect(HookTable.parse(table)).toEqual(table);
  });

  test('a hook of a persona can be neither announced nor registered by others', () => {
    const [own] = hooksOf(hook({ event: 'post_turn', handler: './a.ts' }));
    const announced = { v: 1, service: 's', since: '2026-01-01T00:00:00Z', registrations: [own?.registration] };
    expect(HookAnnouncement.safeParse(announced).success).toBe(false);
    expect(readRegistration({ id: 'a', point: 'post_turn', persona_version: 'v1' })).toMatchObject({
      ok: false,
      problem: { code: 'unknown_field', field: 'persona_version' },
    });
    expect(readRegistration({ id: 'reviewer:a', point: 'post_turn' })).toMatchObject({ problem: { field: 'id' } });
  });
});

describe('rejections', () => {
  test.each<[string, object, RegExp]>([
    ['a key that there is not', hook({ event: 'post_turn', handlr: 'x' }), /^unknown hooks\[0\]\.handlr: .*"handler"/],
    [
      'a key of a manifest that means nothing here',
      hook({ event: 'post_turn', persona: 'x' }),
      /^unknown hooks\[0\]\.persona/,
    ],
    ['no event', hook({ handler: 'x' }), /^hooks\[0\]\.event: is missing/],
    [
      'a point that there is not',
      hook({ event: 'post_tun', handler: 'x' }),
      /^hooks\[0\]\.event: .*did you mean PostTurn\?/,
    ],
    ['nothing to do', hook({ event: 'post_turn' }), /^hooks\[0\]: it has no handler/],
    [
      'nothing to do at the end',
      { on_finish: { timeout_ms: 5 } },
      /^on_finish: it has no handler: give handler or returns$/,
    ],
    [
      'no percentage',
      hook({ event: 'OnBudgetThreshold(101)', returns: true }),
      /^hooks\[0\]\.event: the percentage of OnBudgetThreshold\(101\) must be at most 100$/,
    ],
    ['nothing that it returns', hook({ event: 'PreToolUse', returns: null }), /^hooks\[0\]\.returns: is empty/],
    [
      'an id that an earlier one has by default',
      {
        hooks: [
          { event: 'post_turn', id: 'post_turn-2', handler: 'x' },
          { event: 'post_turn', handler: 'y' },
        ],
      },
      /^hooks\[1\]\.id: another hook of reviewer at post_turn has the id post_turn-2$/,
    ],
    ['a key that the end has not', { on_finish: { handler: 'x', step: 'y' } }, /^unknown on_finish\.step/],
    [
      'a deny where nobody can',
      hook({ event: 'post_turn', deny: 'no' }),
      /^hooks\[0\]\.deny: it is for PreToolUse only/,
    ],
    ['a bound where there is no result', hook({ event: 'post_turn', max_output: 9 }), /^hooks\[0\]\.max_output: /],
    [
      'a handler that nobody would ask',
      hook({ event: 'PreToolUse', deny: 'no', handler: 'x' }),
      /^hooks\[0\]\.handler: deny/,
    ],
    ['a handler beside its answer', { on_finish: { returns: true, handler: 'x' } }, /^on_finish\.handler: returns/],
    ['two answers', hook({ event: 'PreToolUse', deny: 'no', returns: { deny: 'no' } }), /^hooks\[0\]\.returns: deny/],
    ['a pattern that is none', hook({ event: 'PreToolUse', pattern: 'a b', deny: 'no' }), /^hooks\[0\]\.pattern: /],
    [
      'a path that leads nowhere',
      hook({ event: 'PreToolUse', pattern: 'tool.nam == "x"', deny: 'no' }),
      /^hooks\[0\]\.pattern: .*did you mean name/,
    ],
    [
      'an answer that means nothing there',
      hook({ event: 'post_turn', returns: { block: true } }),
      /^hooks\[0\]\.returns: .*only at user_prompt_submit/,
    ],
    [
      'a misspelt answer',
      { on_finish: { returns: { bdy: 'x' } } },
      /^on_finish\.returns: post_finish: no answer has the key "bdy"/,
    ],
    [
      'one answer for every batch',
      hook({ event: 'gate_tool_calls', returns: [{ allow: true }] }),
      /^hooks\[0\]\.returns: .*needs a handler/,
    ],
    [
      'one view for every request',
      hook({ event: 'transform_context', returns: { messages: [] } }),
      /^hooks\[0\]\.returns: .*needs a handler/,
    ],
    [
      'a job that nobody has begun',
      { on_finish: { returns: { job: { status: 'queued', job_id: 'j' } } } },
      /^on_finish\.returns: only a handler/,
    ],
    [
      'an answer that is too long',
      { on_finish: { returns: { body: 'x'.repeat(4_096) } } },
      /^on_finish\.returns: has at most 4096 bytes/,
    ],
    [
      'an allowance',
      hook({ event: 'permission_asked', returns: { decision: 'allow' } }),
      /^hooks\[0\]\.returns: .*may deny, and not allow/,
    ],
    [
      'a step that there is not',
      { steps: [{ name: 'draft', prompt: 'D.' }], ...hook({ event: 'PreStep', step: 'darft', handler: 'x' }) },
      /^hooks\[0\]\.step: .*did you mean "draft"\?/,
    ],
    [
      'a pattern that no step of it can fit',
      { steps: [{ name: 'draft', prompt: 'D.' }], ...hook({ event: 'PreStep', pattern: 'draft', handler: 'x' }) },
      /^hooks\[0\]\.pattern: .*say step: draft/,
    ],
    [
      'a pattern of another persona',
      hook({ event: 'session_start', pattern: 'others', handler: 'x' }),
      /^hooks\[0\]\.pattern: .*held against the persona/,
    ],
    [
      'a step where there is none',
      hook({ event: 'PreToolUse', step: 'draft', deny: 'x' }),
      /^hooks\[0\]\.step: .*not a hook point of a step/,
    ],
    [
      'an id twice at a point',
      {
        hooks: [
          { event: 'post_turn', id: 'a', handler: 'x' },
          { event: 'PostTurn', id: 'a', handler: 'y' },
        ],
      },
      /^hooks\[1\]\.id: /,
    ],
    [
      'more than there may be',
      { hooks: Array.from({ length: 33 }, () => ({ event: 'post_turn', handler: 'x' })) },
      /^hooks: /,
    ],
    [
      'a time that is too long',
      { on_finish: { handler: 'x', timeout_ms: 60_001 } },
      /^on_finish\.timeout_ms: must be at most 60000/,
    ],
    ['a time that is none', hook({ event: 'post_turn', handler: 'x', timeout_ms: 0 }), /^hooks\[0\]\.timeout_ms: /],
  ])('%s', (_what, persona, said) => {
    expect(refusal(persona)).toMatch(said);
  });

  test('an answer that refuses is accepted, one that allows is not', () => {
    expect(refusal(hook({ event: 'permission_asked', returns: { decision: 'deny', reason: 'not here' } }))).toBe('ok');
  });
});
