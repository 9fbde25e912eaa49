/**
 * Registrations: valid ones, immediate rejections, and the order of calls.
 */
import { describe, expect, test } from 'vitest';
import { snakeNameOfPoint } from '../src/hooks/hook-points.ts';
import {
  BOUNDS,
  HOOK_CATALOGUE,
  HOOK_POINTS,
  HookRegistration,
  HookTable,
  inCallOrder,
  pascalNameOfPoint,
  readRegistration,
  registrationMatches,
  SEAM_KINDS,
} from '../src/mod.ts';

const read = (more: Record<string, unknown>) => readRegistration({ id: 'h', point: 'post_turn', ...more });
const taken = (more: Record<string, unknown>) => {
  const result = read(more);
  if (!result.ok) throw new Error(result.problem.message);
  return result.registration;
};
const refused = (more: Record<string, unknown>) => {
  const result = read(more);
  return result.ok ? null : `${result.problem.code} ${result.problem.field}`;
};

describe('a point', () => {
  test.each(HOOK_POINTS)(
    '%s has a name in PascalCase, an alias in snake_case, and one spelling in journals',
    (point) => {
      expect(pascalNameOfPoint(point)).toMatch(/^([A-Z][a-z]+)+$/);
      expect(snakeNameOfPoint(point)).toMatch(/^[a-z]+(_[a-z]+)*$/);
      expect([pascalNameOfPoint(point), snakeNameOfPoint(point)]).toContain(point);
      for (const name of [pascalNameOfPoint(point), snakeNameOfPoint(point)])
        expect(taken({ point: name }).point).toBe(point);
    },
  );

  test('with a misspelt name: the error suggests the name in PascalCase', () => {
    for (const point of ['UserPromptSubmitt', 'user_prompt_submitt']) {
      const result = read({ point });
      expect(result.ok ? '' : result.problem.message).toContain('did you mean UserPromptSubmit?');
    }
  });

  test.each(['PreToolUze', '', 'pretooluse', 'toString', '__proto__', 'PreToolUse(80)', 'OnBudgetThreshold(x)'])(
    '%j does not exist: unknown_hook_point',
    (point) => {
      expect(refused({ point })).toBe('unknown_hook_point point');
    },
  );

  test('of a budget may contain its percentage', () => {
    expect(taken({ point: 'OnBudgetThreshold(80)' })).toMatchObject({ point: 'OnBudgetThreshold', pct: 80 });
    expect(taken({ point: 'on_budget_threshold', pct: 70 })).toMatchObject({ pct: 70 });
    expect(taken({ point: 'OnBudgetThreshold' }).pct).toBeUndefined();
    expect(refused({ point: 'OnBudgetThreshold(101)' })).toBe('invalid_field pct');
    expect(refused({ point: 'OnBudgetThreshold(0)' })).toBe('invalid_field pct');
    expect(refused({ point: 'OnBudgetThreshold(80)', pct: 80 })).toBe('invalid_field pct');
  });

  test('has the surfaces of its table', () => {
    for (const point of HOOK_POINTS) {
      for (const surface of ['tool', 'persona', 'step', 'session', 'checkpoint'] as const) {
        const isOf = HOOK_CATALOGUE[point].surfaces.includes(surface);
        expect([point, surface, refused({ point, surface })]).toEqual([
          point,
          surface,
          isOf ? null : 'invalid_field surface',
        ]);
      }
    }
  });
});

describe('a pattern', () => {
  test.each(['', '*', 'exec*', 'coder.plan', 'src/*.ts', 'turn == "2"'])('%j is accepted', (pattern) => {
    expect(refused({ pattern })).toBeNull();
  });

  test.each<[point: string, pattern: string]>([
    ['user_prompt_submit', 'prompt =~ "(?i)secret"'],
    ['user_prompt_submit', 'origin != "prompt"'],
    ['PreToolUse', 'tool.args.path == "a b"'],
    ['PreToolUse', 'tool.args.any.thing.3 == "a"'],
    ['gate_tool_calls', 'calls.0.name == "exec"'],
    ['PostToolUse', 'result.content.0.text =~ "secret"'],
    ['PostStep', 'step.output.verdict == "no"'],
    ['session_error', 'error.code == "model_timeout"'],
    ['loop_checkpoint', 'skipped_call_ids.0 == "c1"'],
    ['OnBudgetThreshold(80)', 'usage.budget == "usd"'],
  ])('at %s %j is a condition on the payload', (point, pattern) => {
    expect(refused({ point, pattern })).toBeNull();
  });

  test.each<[point: string, pattern: string, problem: string]>([
    ['PreToolUse', 'args.command =~ "rm"', 'there is no "args" in a payload of PreToolUse'],
    ['PreToolUse', 'tol.name == "exec"', 'did you mean tool?'],
    ['PreToolUse', 'tool.arguments.path != "a"', 'there is no "arguments" in "tool" in a payload of PreToolUse'],
    ['PreToolUse', 'tool.name.first == "e"', '"name" in "tool" in a payload of PreToolUse has no members'],
    ['PreToolUse', '__proto__.name == "e"', 'there is no "__proto__"'],
    ['post_turn', 'prompt =~ "secret"', 'there is no "prompt" in a payload of post_turn'],
    ['gate_tool_calls', 'calls.name == "exec"', '"calls" in a payload of gate_tool_calls is a list'],
    ['PostToolUse', 'result.content.0.txt == "a"', 'there is no "txt"'],
  ])('at %s %j could never be true, so it is rejected', (point, pattern, problem) => {
    expect(read({ point, pattern })).toMatchObject({
      ok: false,
      problem: { code: 'invalid_pattern', field: 'pattern', message: expect.stringContaining(problem) },
    });
  });

  test.each([
    'tool.name = "exec"',
    'tool.name =~ "("',
    'tool.name =~ exec',
    '[abc]',
    '{a,b}',
    '/exec.*/|x',
    'exec write',
    'x'.repeat(BOUNDS.patternMaxChars + 1),
  ])('%j is rejected', (pattern) => {
    expect(refused({ pattern })).toBe('invalid_pattern pattern');
  });

  test('of the maximum length is accepted', () => {
    expect(refused({ pattern: 'x'.repeat(BOUNDS.patternMaxChars) })).toBeNull();
  });

  const occasion = {
    persona: 'coder',
    target: 'exec_shell',
    payload: { tool: { name: 'exec_shell', args: { n: 1 } } },
  };
  test.each([
    [{ pattern: '' }, true],
    [{ pattern: 'exec_*' }, true],
    [{ pattern: 'write_*' }, false],
    [{ pattern: 'tool.args.n == "1"' }, true],
    [{ pattern: 'tool.args.n != "1"' }, false],
    [{ pattern: 'tool.name =~ "^exec"' }, true],
    [{ pattern: 'tool.args.missing == "x"' }, false],
    [{ pattern: 'tool.args.missing != "x"' }, true],
    [{ persona: 'cod*' }, true],
    [{ persona: 'reviewer' }, false],
    [{ persona: 'reviewer', pattern: 'exec_*' }, false],
  ])('%j matches: %s', (more, matches) => {
    expect(registrationMatches(taken({ point: 'PreToolUse', ...more }), occasion)).toBe(matches);
  });

  test('on a step needs a step', () => {
    const registration = taken({ point: 'PreStep', persona: 'coder', step: 'pl*' });
    const at = { persona: 'coder', target: 'coder.plan', payload: {} };
    expect(registrationMatches(registration, { ...at, step: 'plan' })).toBe(true);
    expect(registrationMatches(registration, { ...at, step: 'write' })).toBe(false);
    expect(registrationMatches(registration, at)).toBe(false);
  });

  test('with a condition counts as true for an unknown payload; a glob is decided', () => {
    const before = { ...occasion, payload: undefined };
    const matches = (pattern: string) => registrationMatches(taken({ point: 'PreToolUse', pattern }), before);
    expect(['tool.name == "other"', 'exec_*', 'other'].map(matches)).toEqual([true, true, false]);
  });
});

describe('kinds of checkpoints', () => {
  const kindsOf = (kinds?: unknown) => {
    const registration = taken({ point: 'loop_checkpoint', ...(kinds === undefined ? {} : { kinds }) });
    return SEAM_KINDS.filter((kind) =>
      registrationMatches(registration, { persona: 'p', target: kind, payload: { kind } }),
    );
  };

  test.each(SEAM_KINDS)('one: %s', (kind) => {
    expect(kindsOf(kind)).toEqual([kind]);
    expect(kindsOf([kind])).toEqual([kind]);
  });

  test('a list, in any order', () => {
    expect(kindsOf(['loop_exit', 'pre_compact', 'loop_exit'])).toEqual(['pre_compact', 'loop_exit']);
  });

  test('"*", a list with it, or none given: all', () => {
    expect([kindsOf('*'), kindsOf(['*']), kindsOf()]).toEqual([SEAM_KINDS, SEAM_KINDS, SEAM_KINDS]);
  });

  test('an unknown seam is rejected; so are kinds at other points, and next to a pattern', () => {
    expect(refused({ point: 'loop_checkpoint', kinds: 'iteration_strat' })).toBe('invalid_pattern kinds');
    expect(refused({ point: 'loop_checkpoint', kinds: [] })).toBe('invalid_pattern kinds');
    expect(refused({ point: 'post_turn', kinds: 'loop_exit' })).toBe('invalid_pattern kinds');
    expect(refused({ point: 'loop_checkpoint', kinds: 'loop_exit', pattern: 'x' })).toBe('invalid_pattern kinds');
  });
});

describe('a registration', () => {
  test('has its defaults', () => {
    expect(taken({})).toEqual({
      id: 'h',
      point: 'post_turn',
      pattern: '*',
      priority: 0,
      timeout_ms: 5_000,
      on_error: 'fail_closed',
    });
  });

  test.each([
    [{ id: 'a.b' }, 'invalid_field id'],
    [{ id: '' }, 'invalid_field id'],
    [{ patern: '*' }, 'unknown_field patern'],
    [{ timeout_ms: 0 }, 'invalid_field timeout_ms'],
    [{ timeout_ms: BOUNDS.hookTimeoutMaxMs }, null],
    [{ timeout_ms: BOUNDS.hookTimeoutMaxMs + 1 }, 'invalid_field timeout_ms'],
    [{ on_error: 'open' }, 'invalid_field on_error'],
    [{ priority: 1.5 }, 'invalid_field priority'],
    [{ step: 'plan' }, 'invalid_pattern step'],
    [{ pct: 80 }, 'invalid_field pct'],
    [{ deny: 'no' }, 'invalid_field deny'],
    [{ point: 'PreToolUse', deny: 'no' }, null],
    [{ max_output: 10 }, 'invalid_field max_output'],
    [{ point: 'PostToolUse', max_output: 10 }, null],
    [{ point: 'PostToolUse', max_output: 0 }, 'invalid_field max_output'],
    [{ point: 'PostToolUse', no_handler: true }, 'invalid_field no_handler'],
    [{ point: 'PostToolUse', no_handler: true, max_output: 10 }, null],
    [{ persona: '[x]' }, 'invalid_pattern persona'],
  ])('%j: %s', (more, problem) => {
    expect(refused(more)).toBe(problem);
  });

  test.each([undefined, null, 7, 'x', [], {}])('%j is rejected without an exception', (written) => {
    expect(readRegistration(written).ok).toBe(false);
  });

  test('is unchanged by a second read', () => {
    const whole = taken({ point: 'OnBudgetThreshold(80)', persona: 'c*', step: 's', source: 'manifest', priority: -3 });
    expect(readRegistration(whole)).toEqual({ ok: true, registration: whole });
    expect(HookRegistration.parse(whole)).toEqual(whole);
  });
});

describe('a table', () => {
  const entry = (id: string, more: Record<string, unknown> = {}) => taken({ id, ...more });

  test('is ordered by priority, then manifest before code, then by registration', () => {
    const table = [
      entry('code-1'),
      entry('late', { priority: 5, source: 'manifest' }),
      entry('manifest-1', { source: 'manifest' }),
      entry('early', { priority: -1 }),
      entry('code-2', { source: 'code' }),
      entry('manifest-2', { source: 'manifest' }),
    ];
    const asked = ['early', 'manifest-1', 'manifest-2', 'code-1', 'code-2', 'late'];
    expect(inCallOrder(table).map(({ id }) => id)).toEqual(asked);
  });

  test('has an id at most once per point, and may have it at several points', () => {
    expect(HookTable.safeParse([entry('a'), entry('a', { point: 'session_end' })]).success).toBe(true);
    expect(HookTable.safeParse([entry('a'), entry('a')]).success).toBe(false);
  });

  test.each([
    [BOUNDS.hooksMax, true],
    [BOUNDS.hooksMax + 1, false],
  ])('of %i registrations is accepted: %s', (count, fits) => {
    expect(HookTable.safeParse(Array.from({ length: count }, (_, i) => entry(`h${i}`))).success).toBe(fits);
  });
});
