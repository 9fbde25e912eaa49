/**
 * Return values of handlers: every one at every point. The oracle is the table of the return protocol, written out here
 * and independent of the parser's tables.
 */
import { describe, expect, test } from 'vitest';
import { BOUNDS, HOOK_POINTS, type HookPoint, isHookFailure, JobReceipt, parseReturn } from '../src/mod.ts';
import { DENY, EVERYWHERE, expected, ROWS, reminding } from './return-table.ts';

function found(point: HookPoint, raw: unknown): string {
  const parsed = parseReturn(point, raw);
  if (isHookFailure(parsed)) return parsed.code;
  const { verdict, reminders } = parsed;
  return reminders.length > 0 ? `${verdict.kind}, ${reminders.length} reminders` : verdict.kind;
}

test('the oracle contains every point', () => {
  expect([...EVERYWHERE].sort()).toEqual([...HOOK_POINTS].sort());
});

describe.each(EVERYWHERE)('at %s', (point) => {
  test.each(Object.entries(ROWS))('%s', (_name, row) => {
    expect(found(point, row.raw)).toBe(expected(row, point));
  });
});

/** The verdict of a return that has one. */
function verdict(point: HookPoint, raw: unknown) {
  const parsed = parseReturn(point, raw);
  if (isHookFailure(parsed)) throw new Error(parsed.message);
  return parsed.verdict;
}

function reminders(point: HookPoint, raw: unknown) {
  const parsed = parseReturn(point, raw);
  if (isHookFailure(parsed)) throw new Error(parsed.message);
  return parsed.reminders;
}

describe('an answer', () => {
  test('keeps its content', () => {
    expect(verdict('user_prompt_submit', { block: true, reason: 'r' })).toEqual({ kind: 'block', reason: 'r' });
    expect(verdict('permission_asked', { decision: 'deny', reason: 'r' })).toEqual({
      kind: 'decision',
      decision: 'deny',
      reason: 'r',
    });
    expect(verdict('PreToolUse', { deny: 'r' })).toEqual({ kind: 'deny', reason: 'r' });
    expect(verdict('PreToolUse', { args: { a: [1] } })).toEqual({ kind: 'rewrite_args', args: { a: [1] } });
    expect(verdict('PostToolUse', 'text')).toEqual({ kind: 'rewrite_result', result: 'text' });
    expect(verdict('PostToolUse', { is_error: false })).toEqual({ kind: 'rewrite_result', is_error: false });
    expect(verdict('PostStep', { output: { a: 1 } })).toEqual({ kind: 'rewrite_output', output: { a: 1 } });
  });

  test('of a gate has one verdict per call; a malformed entry names its problem', () => {
    const said = [{ allow: true }, { allow: false, reason: 'r' }, { alow: true }, null, 'yes', { allow: 1 }];
    expect(verdict('gate_tool_calls', said)).toEqual({
      kind: 'gate',
      calls: [
        { allow: true },
        { allow: false, reason: 'r' },
        { invalid: 'gate_tool_calls: unknown key "alow" in "[2]"' },
        { invalid: expect.stringMatching(/^gate_tool_calls: \[3\]: /) },
        { invalid: expect.stringMatching(/^gate_tool_calls: \[4\]: /) },
        { invalid: expect.stringMatching(/^gate_tool_calls: \[5\].allow: /) },
      ],
    });
  });

  test.each([undefined, true, [], { body: 'b' }, { reminder: { body: 'b' } }, [{ reminder: { body: 'b' } }]])(
    'of a gate with %j denies every call',
    (raw) => {
      expect(verdict('gate_tool_calls', raw)).toEqual({ kind: 'gate', calls: [] });
    },
  );

  test('of a gate fits its batch, also next to a reminder', () => {
    expect(parseReturn('gate_tool_calls', reminding([{ allow: true }]), 2)).toEqual({
      code: 'verdict_invalid',
      message: 'gate_tool_calls: 1 verdict for a batch of 2 calls',
    });
  });

  test('of a gate is at most as long as a batch', () => {
    const parsed = verdict('gate_tool_calls', Array(1_000).fill({ allow: true }));
    expect(parsed).toMatchObject({ kind: 'gate' });
    if (parsed.kind === 'gate') expect(parsed.calls).toHaveLength(BOUNDS.callsPerBatchMax);
  });
});

describe('a reminder', () => {
  test('has its defaults filled in, and no mode unless given', () => {
    expect(reminders('post_turn', { body: 'b' })).toEqual([
      { body: 'b', tags: [], preserve_on_compact: false, propagate: 'session', role_hint: 'system' },
    ]);
    expect(reminders('post_turn', { body: 'b', mode: 'audit_only' })[0]).toMatchObject({ mode: 'audit_only' });
  });

  test.each(['steer', 'finish_step', 'interrupt', 'interrupt_immediate'])(
    'with the mode %s, which would have no effect, is rejected',
    (mode) => {
      expect(parseReturn('post_turn', { reminder: { body: 'b', mode } })).toEqual({
        code: 'verdict_invalid',
        message: expect.stringMatching(/^post_turn: reminder.mode: only audit_only has an effect here/),
      });
    },
  );

  test.each([
    ['[1].mode', { body: 'b', mode: 'steer' }],
    ['[1].reminder.mode', { reminder: { body: 'b', mode: 'steer' } }],
  ])('in a list is rejected with the field %s', (field, reminder) => {
    expect(parseReturn('post_turn', [{ body: 'a' }, reminder])).toEqual({
      code: 'verdict_invalid',
      message: expect.stringContaining(`post_turn: ${field}: only audit_only has an effect here`),
    });
  });

  test('precedes those of the inner answer', () => {
    const raw = reminding(reminding({ body: '3' }, { body: '2' }), { body: '1' });
    expect(reminders('PreToolUse', raw).map(({ body }) => body)).toEqual(['1', '2', '3']);
  });

  test('with a repeated key: the last stays, at the position of the first', () => {
    const list = ['a', 'b', 'c', 'd'].map((body) => ({
      reminder: { body, ...(body === 'b' || body === 'd' ? { dedupe_key: 'k' } : {}) },
    }));
    expect(reminders('post_turn', list).map(({ body }) => body)).toEqual(['a', 'd', 'c']);
  });

  test('in an empty list means no reminder', () => {
    expect(verdict('post_turn', [])).toEqual({ kind: 'no_objection' });
    expect(reminders('post_turn', [])).toEqual([]);
  });

  test.each([
    [BOUNDS.remindersPerReturnMax, true],
    [BOUNDS.remindersPerReturnMax + 1, false],
  ])('%i in one return value: accepted is %s', (count, taken) => {
    const list = Array.from({ length: count }, (_, i) => ({ reminder: { body: `b${i}` } }));
    expect(isHookFailure(parseReturn('post_turn', list))).toBe(!taken);
  });

  test('has a bounded nesting depth', () => {
    let raw: unknown = true;
    for (let i = 0; i < 20; i++) raw = reminding(raw);
    expect(parseReturn('post_turn', raw)).toMatchObject({ code: 'verdict_invalid' });
  });
});

describe('a job receipt', () => {
  const whole = {
    status: 'queued',
    job_id: 'j1',
    run_id: 'r1',
    dedupe_key: 'k',
    lifecycle_event: 'FileEdited',
    affected_paths: ['b', 'a', 'b'],
    artifact_ids: ['y', 'x', 'y'],
    duration_ms: 3,
    retry_hint: { retryable: true, after_ms: 5, max_attempts: 2, reason: 'busy' },
    replay: { mode: 'skip', determinism_key: 'd', reason: 'r' },
    error: 'none yet',
    metadata: { a: [1] },
  };

  test('keeps all members; paths and ids sorted, without duplicates', () => {
    expect(verdict('file_edited', { job: whole })).toEqual({
      kind: 'job',
      receipt: {
        ...whole,
        lifecycle_event: 'file_edited',
        affected_paths: ['a', 'b'],
        artifact_ids: ['x', 'y'],
        error: { message: 'none yet' },
      },
    });
  });

  test('is unchanged by a second parse', () => {
    const once = JobReceipt.parse(whole);
    expect(JobReceipt.parse(once)).toEqual(once);
  });

  test.each([
    ['status', { status: 'done', job_id: 'j' }],
    ['job_id', { status: 'queued' }],
    ['jobid', { ...whole, jobid: 'j' }],
    ['retryible', { ...whole, retry_hint: { retryible: true } }],
    ['mode', { ...whole, replay: { mode: 'maybe' } }],
    ['determinism', { ...whole, replay: { mode: 'skip', determinism: 'd' } }],
    ['lifecycle_event', { ...whole, lifecycle_event: 'file_edted' }],
    ['affected_paths', { ...whole, affected_paths: Array(BOUNDS.receiptListMax + 1).fill('p') }],
    ['metadata', { ...whole, metadata: { a: 'x'.repeat(BOUNDS.receiptMetadataMaxBytes) } }],
  ])('with a wrong %s is rejected by name', (name, job) => {
    expect(parseReturn('file_edited', { job })).toMatchObject({
      code: 'verdict_invalid',
      message: expect.stringContaining(name),
    });
  });
});

describe('an invalid answer', () => {
  test('names the key and the point', () => {
    expect(parseReturn('PreToolUse', { denny: 'r' })).toEqual({
      code: 'verdict_invalid',
      message: 'PreToolUse: no answer has the key "denny"',
    });
    expect(parseReturn('permission_asked', { decision: 'allow', resaon: 'r' })).toEqual({
      code: 'verdict_invalid',
      message: 'permission_asked: unknown key "resaon" next to "decision"',
    });
    expect(parseReturn('post_turn', { reminder: { bdoy: 'b' } })).toMatchObject({
      message: 'post_turn: unknown key "bdoy" in "reminder"',
    });
    expect(parseReturn('post_turn', { body: 'b', tagz: [] })).toMatchObject({
      message: expect.stringContaining('"tagz"'),
    });
    expect(parseReturn('PreToolUse', JSON.parse('{"args": {"a": {"__proto__": 1}}}'))).toEqual({
      code: 'verdict_invalid',
      message: 'PreToolUse: the key "__proto__" is not allowed',
    });
  });

  test('names the points where it would be valid', () => {
    expect(parseReturn('PostToolUse', { deny: 'r' })).toEqual({
      code: 'verdict_not_allowed',
      message: `PostToolUse: "deny" is not allowed here, only at ${DENY.join(', ')}`,
    });
    expect(parseReturn('session_end', false)).toEqual({
      code: 'verdict_not_allowed',
      message: 'session_end: false is not allowed here, only at user_prompt_submit, pre_compact, pre_suspend',
    });
  });

  test.each(HOOK_POINTS)('never throws at %s, for any return value of a handler', (point) => {
    const cyclic: Record<string, unknown> = {};
    cyclic.args = cyclic;
    for (const raw of [
      cyclic,
      { args: cyclic },
      { reminder: cyclic },
      { job: cyclic },
      [cyclic],
      Symbol('s'),
      () => true,
      1n,
      new Map(),
      new Date(0),
      { deny: 'x'.repeat(1e6) },
      Object.create(null),
    ]) {
      expect(() => parseReturn(point, raw)).not.toThrow();
    }
  });
});
