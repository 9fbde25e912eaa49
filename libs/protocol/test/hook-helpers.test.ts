/**
 * The helpers that handlers return, at every point: what the compiler accepts, the parser accepts as the expected verdict;
 * what the compiler refuses, the parser refuses. Both are compared with one table, which is written out here.
 */
import { describe, expect, expectTypeOf, test } from 'vitest';
import { type JobAnswer, toPlainReturn } from '../src/hooks/hook-helpers.ts';
import {
  type AllowAnswer,
  type AskAnswer,
  allow,
  ask,
  type DenyAnswer,
  deny,
  type ExactHandler,
  HOOK_POINTS,
  type HookHandler,
  type HookPoint,
  isHookFailure,
  type JsonObject,
  type Message,
  parseReturn,
  type RemindAnswer,
  type RewriteAnswer,
  remind,
  rewrite,
  startJob,
  toWireReturn,
} from '../src/mod.ts';
import { ADVISORY_EVENTS } from './return-table.ts';

const message: Message = { role: 'user', content: [{ type: 'text', text: 't' }] };
const CALLS = 2;

/** The points without a decision: a handler may only remind, or start a job. */
const ADVISORY = [...ADVISORY_EVENTS, 'OnPersonaPaused', 'OnPersonaResumed', 'OnBudgetThreshold'] as const;
const SESSION_EVENTS = [
  'user_prompt_submit',
  'pre_compact',
  'pre_suspend',
  'permission_asked',
  'transform_context',
] as const;
/** Points whose refusal is `{deny}`, apart from `OnApprovalRequested`. */
const DENY = ['PreToolUse', 'PreStep', 'PostStep', 'OnHandoffEmitted'] as const;
const VETO = ['user_prompt_submit', 'pre_compact', 'pre_suspend'] as const;

/** Each helper with the points that accept it. */
const WHERE = {
  allow: [...VETO, ...DENY, 'permission_asked', 'gate_tool_calls'],
  deny: [...VETO, ...DENY, 'OnApprovalRequested', 'permission_asked', 'gate_tool_calls'],
  ask: ['permission_asked'],
  rewriteArgs: ['PreToolUse', 'PreStep', 'PostStep'],
  rewriteText: ['PostToolUse', 'PostStep'],
  rewriteMessages: ['transform_context', 'PostStep'],
  remind: [
    ...VETO,
    ...DENY,
    ...ADVISORY,
    'permission_asked',
    'transform_context',
    'PostToolUse',
    'OnApprovalRequested',
  ],
  remindAndDeny: [...VETO, ...DENY, 'OnApprovalRequested', 'permission_asked', 'gate_tool_calls'],
  remindTwice: [...SESSION_EVENTS, ...ADVISORY_EVENTS],
  gateList: ['gate_tool_calls'],
  startJob: [...ADVISORY],
} as const satisfies Record<string, readonly HookPoint[]>;

const ANSWERS: Readonly<Record<keyof typeof WHERE, unknown>> = {
  allow: allow(),
  deny: deny('no'),
  ask: ask('sure?'),
  rewriteArgs: rewrite({ path: 'a' }),
  rewriteText: rewrite('text'),
  rewriteMessages: rewrite([message]),
  remind: remind('mind', { ttlTurns: 2, auditOnly: true, tags: ['a'] }),
  remindAndDeny: remind('mind', { answer: deny('no') }),
  remindTwice: [remind('mind'), remind('the rocks')],
  gateList: [allow(), deny('no')],
  startJob: startJob({ jobId: 'j' }),
};

/** The verdict that a helper has at a point that accepts it. */
function meaning(form: keyof typeof WHERE, point: HookPoint): unknown {
  const isVeto = (VETO as readonly HookPoint[]).includes(point);
  if (point === 'gate_tool_calls') {
    const no = { allow: false, reason: 'no' };
    if (form === 'allow') return { kind: 'gate', calls: [{ allow: true }, { allow: true }] };
    return { kind: 'gate', calls: form === 'gateList' ? [{ allow: true }, no] : [no, no] };
  }
  switch (form) {
    case 'allow':
      return point === 'permission_asked' ? { kind: 'decision', decision: 'allow' } : { kind: 'no_objection' };
    case 'deny':
    case 'remindAndDeny':
      if (point === 'permission_asked') return { kind: 'decision', decision: 'deny', reason: 'no' };
      return { kind: isVeto ? 'block' : 'deny', reason: 'no' };
    case 'ask':
      return { kind: 'decision', decision: 'ask', reason: 'sure?' };
    case 'rewriteArgs':
      return point === 'PostStep'
        ? { kind: 'rewrite_output', output: { path: 'a' } }
        : { kind: 'rewrite_args', args: { path: 'a' } };
    case 'rewriteText':
      return point === 'PostStep'
        ? { kind: 'rewrite_output', output: 'text' }
        : { kind: 'rewrite_result', result: 'text' };
    case 'rewriteMessages':
      return point === 'PostStep'
        ? { kind: 'rewrite_output', output: [message] }
        : { kind: 'replace_messages', messages: [message] };
    case 'startJob':
      return { kind: 'job', receipt: { job_id: 'j', status: 'queued' } };
    default:
      return { kind: 'no_objection' };
  }
}

const parsed = (point: HookPoint, answer: unknown) => {
  const wire = toWireReturn(point, answer, CALLS);
  return wire.ok ? parseReturn(point, wire.value, CALLS) : { code: 'verdict_invalid' as const, message: wire.message };
};
const FORMS = Object.keys(WHERE) as (keyof typeof WHERE)[];

describe.each(HOOK_POINTS)('at %s', (point) => {
  test.each(FORMS)('%s', (form) => {
    const found = parsed(point, ANSWERS[form]);
    if ((WHERE[form] as readonly HookPoint[]).includes(point))
      return expect(found).toMatchObject({ verdict: meaning(form, point) });
    // A gate with only a reminder refuses every call of its batch.
    if (!isHookFailure(found)) return expect(found.verdict).toEqual({ kind: 'gate', calls: [] });
    return expect(found.code).toMatch(/^verdict_(invalid|not_allowed)$/);
  });
});

test('the compiler accepts a helper at the same points', () => {
  type Compiles<P extends HookPoint, Returned> = (() => Returned) extends HookHandler<P> &
    ExactHandler<() => Returned, P>
    ? true
    : false;
  interface Types {
    allow: AllowAnswer;
    deny: DenyAnswer;
    ask: AskAnswer;
    rewriteArgs: RewriteAnswer<{ path: string }>;
    rewriteText: RewriteAnswer<string>;
    rewriteMessages: RewriteAnswer<{ role: 'user'; content: { type: 'text'; text: string }[] }[]>;
    remind: RemindAnswer<undefined>;
    remindAndDeny: RemindAnswer<DenyAnswer>;
    remindTwice: RemindAnswer<undefined>[];
    gateList: (AllowAnswer | DenyAnswer)[];
    startJob: JobAnswer;
  }
  type Found = { [P in HookPoint]: { [F in keyof Types]: Compiles<P, Types[F]> } };
  type Later = { [P in HookPoint]: { [F in keyof Types]: Compiles<P, Promise<Types[F] | undefined>> } };
  type Table = { [P in HookPoint]: { [F in keyof Types]: P extends (typeof WHERE)[F][number] ? true : false } };
  expectTypeOf<Found>().toEqualTypeOf<Table>();
  expectTypeOf<Later>().toEqualTypeOf<Table>();
  expectTypeOf<Compiles<'PostToolUse', RewriteAnswer<{ result: string; iserror: boolean }>>>().toEqualTypeOf<false>();
  expectTypeOf<Compiles<'PostToolUse', RewriteAnswer<JsonObject>>>().toEqualTypeOf<false>();
});

test('a reminder has the settings of the wire', () => {
  expect(
    parsed(
      'post_turn',
      remind('mind', { dedupeKey: 'k', preserveOnCompact: true, propagate: 'all', roleHint: 'developer' }),
    ),
  ).toEqual({
    verdict: { kind: 'no_objection' },
    reminders: [
      { body: 'mind', tags: [], dedupe_key: 'k', preserve_on_compact: true, propagate: 'all', role_hint: 'developer' },
    ],
  });
  expect(parsed('post_turn', remind('mind', JSON.parse('{"ttlTurn": 3}')))).toMatchObject({ code: 'verdict_invalid' });
});

test('a helper is also valid as the answer next to a reminder in plain JSON', () => {
  const written = Object.fromEntries([
    ['reminder', { body: 'mind' }],
    ['then', deny('no')],
  ]);
  expect(parsed('pre_compact', written)).toMatchObject({
    verdict: { kind: 'block', reason: 'no' },
    reminders: [{ body: 'mind' }],
  });
});

test.each([undefined, null, true, 5, ['a']])('a result cannot be rewritten to %j', (value) => {
  expect(parsed('PostToolUse', rewrite(value))).toMatchObject({ code: 'verdict_invalid' });
});

test('an unreadable return value is left to the check of returns', () => {
  const trap = new Proxy(
    {},
    {
      get: () => {
        throw new Error('a trap');
      },
      getOwnPropertyDescriptor: () => {
        throw new Error('a trap');
      },
    },
  );
  expect(toPlainReturn('PreToolUse', trap, 0)).toBe(trap);
  const cyclic: Record<string, unknown> = { reminder: { body: 'mind' } };
  Object.assign(cyclic, Object.fromEntries([['then', cyclic]]));
  expect(() => toWireReturn('PreToolUse', cyclic, 0)).not.toThrow();
});
