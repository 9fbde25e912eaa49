/** What handlers may return: every return at every point. */
import { describe, expect, test } from 'vitest';
import { BOUNDS, HOOK_POINTS, type HookPoint, isHookFailure, parseVerdict } from '../src/mod.ts';

const OTHERS: Readonly<Record<string, unknown>> = {
  undefined,
  null: null,
  true: true,
  false: false,
  'a string': 'text',
  'a number': 7,
  'an empty object': {},
  'an empty list': [],
  '{block: true}': { block: true },
  '{block: true, reason}': { block: true, reason: 'r' },
  '{block: false}': { block: false },
  '{decision: allow}': { decision: 'allow' },
  '{decision: maybe}': { decision: 'maybe' },
  '{deny}': { deny: 'r' },
  '{deny: true}': { deny: true },
  '{args}': { args: { a: 1 } },
  '{args: list}': { args: [] },
  '{result}': { result: 'r' },
  '{is_error}': { is_error: false },
  '{result, is_error}': { result: 'r', is_error: true },
  '{messages}': { messages: [{ role: 'user', content: [{ type: 'text', text: 't' }] }] },
  '{messages: none}': { messages: [] },
  '{reason}': { reason: 'r' },
  '{blok: true}': { blok: true },
  '{decision, resaon}': { decision: 'allow', resaon: 'r' },
  '{deny, args}': { deny: 'r', args: {} },
  '[{allow: true}]': [{ allow: true }],
  '[{allow: true, resaon}]': [{ allow: true, resaon: 'r' }],
};

/** What a return means at a point, in one word. */
function meaning(point: HookPoint, raw: unknown): string {
  const parsed = parseVerdict(point, raw);
  return isHookFailure(parsed) ? parsed.code : parsed.kind;
}

test('every return at every point', () => {
  const rows = Object.entries(OTHERS).map(([name, raw]) => {
    const meanings = HOOK_POINTS.map((point) => meaning(point, raw));
    return [name, ...meanings].join(' | ');
  });
  expect([['return', ...HOOK_POINTS].join(' | '), ...rows]).toMatchInlineSnapshot(`
    [
      "return | session_start | user_prompt_submit | pre_compact | post_compact | transform_context | PreToolUse | gate_tool_calls | permission_asked | PostToolUse | post_turn | file_edited | session_idle | pre_suspend | post_resume | session_error | session_end | pre_finish | on_unsettled_detected | post_finish",
      "undefined | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | verdict_invalid | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection",
      "null | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | verdict_invalid | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection",
      "true | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | verdict_invalid | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection | no_objection",
      "false | verdict_not_allowed | block | block | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_invalid | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | block | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed",
      "a string | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_invalid | verdict_not_allowed | rewrite_result | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed",
      "a number | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid",
      "an empty object | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid",
      "an empty list | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | gate | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid",
      "{block: true} | verdict_not_allowed | block | block | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_invalid | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | block | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed",
      "{block: true, reason} | verdict_not_allowed | block | block | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_invalid | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | block | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed",
      "{block: false} | verdict_not_allowed | verdict_invalid | verdict_invalid | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_invalid | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_invalid | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed",
      "{decision: allow} | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_invalid | decision | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed",
      "{decision: maybe} | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_invalid | verdict_invalid | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed",
      "{deny} | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | deny | verdict_invalid | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed",
      "{deny: true} | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_invalid | verdict_invalid | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed",
      "{args} | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | rewrite_args | verdict_invalid | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed",
      "{args: list} | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_invalid | verdict_invalid | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed",
      "{result} | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_invalid | verdict_not_allowed | rewrite_result | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed",
      "{is_error} | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_invalid | verdict_not_allowed | rewrite_result | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed",
      "{result, is_error} | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_invalid | verdict_not_allowed | rewrite_result | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed",
      "{messages} | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | replace_messages | verdict_not_allowed | verdict_invalid | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed",
      "{messages: none} | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_invalid | verdict_not_allowed | verdict_invalid | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed | verdict_not_allowed",
      "{reason} | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid",
      "{blok: true} | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid",
      "{decision, resaon} | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid",
      "{deny, args} | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid",
      "[{allow: true}] | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | gate | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid",
      "[{allow: true, resaon}] | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | gate | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid | verdict_invalid",
    ]
  `);
});

describe('a verdict', () => {
  test('holds what was said', () => {
    expect(parseVerdict('user_prompt_submit', { block: true, reason: 'r' })).toEqual({ kind: 'block', reason: 'r' });
    expect(parseVerdict('permission_asked', { decision: 'deny', reason: 'r' })).toEqual({
      kind: 'decision',
      decision: 'deny',
      reason: 'r',
    });
    expect(parseVerdict('PreToolUse', { deny: 'r' })).toEqual({ kind: 'deny', reason: 'r' });
    expect(parseVerdict('PreToolUse', { args: { a: [1] } })).toEqual({ kind: 'rewrite_args', args: { a: [1] } });
    expect(parseVerdict('PostToolUse', 'text')).toEqual({ kind: 'rewrite_result', result: 'text' });
    expect(parseVerdict('PostToolUse', { is_error: false })).toEqual({ kind: 'rewrite_result', is_error: false });
  });

  test('of a gate has one answer per call; what is not well-formed stands as null, which denies', () => {
    const said = [{ allow: true }, { allow: false, reason: 'r' }, { alow: true }, null, 'yes', { allow: 1 }];
    expect(parseVerdict('gate_tool_calls', said)).toEqual({
      kind: 'gate',
      calls: [{ allow: true }, { allow: false, reason: 'r' }, null, null, null, null],
    });
  });

  test('of a gate is not longer than a batch can be', () => {
    const parsed = parseVerdict('gate_tool_calls', Array(1_000).fill({ allow: true }));
    expect(parsed).toMatchObject({ kind: 'gate' });
    if ('kind' in parsed && parsed.kind === 'gate') expect(parsed.calls).toHaveLength(BOUNDS.callsPerBatchMax);
  });
});

describe('what is no verdict', () => {
  test('names the key and the point', () => {
    expect(parseVerdict('PreToolUse', { denny: 'r' })).toEqual({
      code: 'verdict_invalid',
      message: 'PreToolUse: no verdict has the key "denny"',
    });
    expect(parseVerdict('permission_asked', { decision: 'allow', resaon: 'r' })).toEqual({
      code: 'verdict_invalid',
      message: 'permission_asked: unknown key "resaon" beside "decision"',
    });
  });

  test('says where it would have been one', () => {
    expect(parseVerdict('PostToolUse', { deny: 'r' })).toEqual({
      code: 'verdict_not_allowed',
      message: 'PostToolUse: "deny" is not allowed here, only at PreToolUse',
    });
    expect(parseVerdict('session_end', false)).toEqual({
      code: 'verdict_not_allowed',
      message: 'session_end: false is not allowed here, only at user_prompt_submit, pre_compact, pre_suspend',
    });
  });

  test.each(HOOK_POINTS)('is never an exception at %s, whatever a handler returns', (point) => {
    const cyclic: Record<string, unknown> = {};
    cyclic.args = cyclic;
    for (const raw of [
      cyclic,
      { args: cyclic },
      Symbol('s'),
      () => true,
      1n,
      new Map(),
      new Date(0),
      { deny: 'x'.repeat(1e6) },
      Object.create(null),
    ]) {
      expect(() => parseVerdict(point, raw)).not.toThrow();
    }
  });
});
