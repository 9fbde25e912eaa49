/**
 * The return protocol as data, with its points written out. It is the oracle of tests and independent of the parser's
 * tables.
 */
import type { HookPoint } from '../src/mod.ts';

const SESSION_EVENTS: readonly HookPoint[] = [
  'session_start',
  'session_end',
  'user_prompt_submit',
  'transform_context',
  'gate_tool_calls',
  'pre_compact',
  'post_compact',
  'post_turn',
  'permission_asked',
  'permission_replied',
  'file_edited',
  'session_error',
  'session_idle',
  'pre_finish',
  'post_finish',
  'on_unsettled_detected',
  'pre_suspend',
  'post_resume',
];
/** Every point. */
export const EVERYWHERE: readonly HookPoint[] = [
  ...SESSION_EVENTS,
  'loop_checkpoint',
  'PreToolUse',
  'PostToolUse',
  'PreStep',
  'PostStep',
  'OnApprovalRequested',
  'OnHandoffEmitted',
  'OnPersonaPaused',
  'OnPersonaResumed',
  'OnBudgetThreshold',
];
/** Events of a session at which a handler may only advise. */
export const ADVISORY_EVENTS = [
  'session_start',
  'session_end',
  'post_compact',
  'post_turn',
  'permission_replied',
  'file_edited',
  'session_error',
  'session_idle',
  'pre_finish',
  'post_finish',
  'on_unsettled_detected',
  'post_resume',
  'loop_checkpoint',
] as const satisfies readonly HookPoint[];
/** Points at which a handler may only advise. */
export const ADVISORY: readonly HookPoint[] = [
  ...ADVISORY_EVENTS,
  'OnPersonaPaused',
  'OnPersonaResumed',
  'OnBudgetThreshold',
];
const VETO: readonly HookPoint[] = ['user_prompt_submit', 'pre_compact', 'pre_suspend'];
/** Points at which a handler may refuse. */
export const DENY: readonly HookPoint[] = [
  'PreToolUse',
  'PreStep',
  'PostStep',
  'OnApprovalRequested',
  'OnHandoffEmitted',
];
const ARGS: readonly HookPoint[] = ['PreToolUse', 'PreStep'];
const GATE: readonly HookPoint[] = ['gate_tool_calls'];
const RESULT: readonly HookPoint[] = ['PostToolUse'];
const NOWHERE: readonly HookPoint[] = [];

const message = { role: 'user', content: [{ type: 'text', text: 't' }] };
/** A reminder. */
export const reminder = { body: 'mind the rocks' };
/** `{reminder, then}`. Not a literal: a linter mistakes an object with `then` for a promise. */
export const reminding = (answer: unknown, said: unknown = reminder): unknown =>
  Object.fromEntries([
    ['reminder', said],
    ['then', answer],
  ]);
const receipt = { status: 'queued', job_id: 'j1' };

/** A return value, with its points and meaning. */
export interface Row {
  readonly raw: unknown;
  /** Its meaning at its points. */
  readonly means: string;
  readonly where: readonly HookPoint[];
  /** The failure at other points. */
  readonly elsewhere: 'verdict_not_allowed' | 'verdict_invalid';
  /** Number of reminders next to it. */
  readonly reminders?: number;
}
const allowed = (raw: unknown, means: string, where: readonly HookPoint[], reminders = 0): Row => ({
  raw,
  means,
  where,
  elsewhere: 'verdict_not_allowed',
  reminders,
});
const never = (raw: unknown): Row => ({ raw, means: '', where: NOWHERE, elsewhere: 'verdict_invalid' });

/** Every return value, by its form. */
export const ROWS: Readonly<Record<string, Row>> = {
  nothing: allowed(undefined, 'no_objection', EVERYWHERE),
  null: allowed(null, 'no_objection', EVERYWHERE),
  true: allowed(true, 'no_objection', EVERYWHERE),
  false: allowed(false, 'block', VETO),
  '{block: true}': allowed({ block: true }, 'block', VETO),
  '{block: true, reason}': allowed({ block: true, reason: 'r' }, 'block', VETO),
  '{decision: allow}': allowed({ decision: 'allow' }, 'decision', ['permission_asked']),
  '{decision: deny, reason}': allowed({ decision: 'deny', reason: 'r' }, 'decision', ['permission_asked']),
  '{decision: ask}': allowed({ decision: 'ask' }, 'decision', ['permission_asked']),
  '{deny: reason}': allowed({ deny: 'r' }, 'deny', DENY),
  '{args}': allowed({ args: { a: 1 } }, 'rewrite_args', ARGS),
  'a string': allowed('text', 'rewrite_result', RESULT),
  '{result}': allowed({ result: 'r' }, 'rewrite_result', RESULT),
  '{is_error}': allowed({ is_error: false }, 'rewrite_result', RESULT),
  '{result, is_error}': allowed({ result: 'r', is_error: true }, 'rewrite_result', RESULT),
  '{output}': allowed({ output: [1] }, 'rewrite_output', ['PostStep']),
  '{messages}': allowed({ messages: [message] }, 'replace_messages', ['transform_context']),
  '[{allow}]': allowed([{ allow: true }], 'gate', GATE),
  '[{allow, reason}]': allowed([{ allow: false, reason: 'r' }], 'gate', GATE),
  '{reminder}': allowed({ reminder }, 'no_objection', EVERYWHERE, 1),
  '{reminder, then: true}': allowed(reminding(true), 'no_objection', EVERYWHERE, 1),
  '{reminder, then: a veto}': allowed(reminding({ block: true }), 'block', VETO, 1),
  '{reminder, then: false}': allowed(reminding(false), 'block', VETO, 1),
  '{reminder, then: a decision}': allowed(reminding({ decision: 'allow' }), 'decision', ['permission_asked'], 1),
  '{reminder, then: a refusal}': allowed(reminding({ deny: 'r' }), 'deny', DENY, 1),
  '{reminder, then: args}': allowed(reminding({ args: {} }), 'rewrite_args', ARGS, 1),
  '{reminder, then: a string}': allowed(reminding('text'), 'rewrite_result', RESULT, 1),
  '{reminder, then: output}': allowed(reminding({ output: null }), 'rewrite_output', ['PostStep'], 1),
  '{reminder, then: messages}': allowed(
    reminding({ messages: [message] }),
    'replace_messages',
    ['transform_context'],
    1,
  ),
  '{reminder, then: a gate}': allowed(reminding([{ allow: true }]), 'gate', GATE, 1),
  '{reminder, then: a job}': allowed(reminding({ job: receipt }), 'job', ADVISORY, 1),
  '{reminder, then: {reminder}}': allowed(reminding({ reminder }), 'no_objection', EVERYWHERE, 2),
  '{body}': allowed(reminder, 'no_objection', EVERYWHERE, 1),
  '{body, tags, dedupe_key, …}': allowed(
    {
      ...reminder,
      tags: ['a'],
      dedupe_key: 'k',
      mode: 'audit_only',
      ttl_turns: 2,
      preserve_on_compact: true,
      propagate: 'all',
      role_hint: 'developer',
    },
    'no_objection',
    EVERYWHERE,
    1,
  ),
  '[{reminder}]': allowed([{ reminder }], 'no_objection', [...SESSION_EVENTS, 'loop_checkpoint'], 1),
  '[{reminder}, {reminder}]': allowed(
    [{ reminder }, { reminder: { body: 'b' } }],
    'no_objection',
    [...SESSION_EVENTS, 'loop_checkpoint'],
    2,
  ),
  '{job: receipt}': allowed({ job: receipt }, 'job', ADVISORY),
  'a number': never(7),
  'an empty object': never({}),
  '{block: false}': { ...never({ block: false }), elsewhere: 'verdict_not_allowed' },
  '{decision: maybe}': { ...never({ decision: 'maybe' }), elsewhere: 'verdict_not_allowed' },
  '{deny: true}': { ...never({ deny: true }), elsewhere: 'verdict_not_allowed' },
  '{args: list}': { ...never({ args: [] }), elsewhere: 'verdict_not_allowed' },
  '{messages: none}': { ...never({ messages: [] }), elsewhere: 'verdict_not_allowed' },
  '{job: nothing}': { ...never({ job: {} }), elsewhere: 'verdict_not_allowed' },
  '{reason}': never({ reason: 'r' }),
  '{blok: true}': never({ blok: true }),
  '{denny}': never({ denny: 'r' }),
  '{decision, resaon}': never({ decision: 'allow', resaon: 'r' }),
  '{deny, args}': never({ deny: 'r', args: {} }),
  '{reminder, than}': never({ reminder, than: true }),
  '{reminder: {bdoy}}': never({ reminder: { bdoy: 'b' } }),
  '{reminder: {body: ""}}': never({ reminder: { body: ' ' } }),
  '{reminder, then: {denny}}': never(reminding({ denny: 'r' })),
  '{reminder: {mode: whenever}}': never({ reminder: { body: 'b', mode: 'whenever' } }),
  '{body, tagz}': never({ body: 'b', tagz: [] }),
  '{__proto__}': never(JSON.parse('{"__proto__": {"deny": "r"}}')),
  '{deny, __proto__}': never(JSON.parse('{"deny": "r", "__proto__": {}}')),
  '{constructor}': never({ constructor: 'r' }),
  '{args: {__proto__}}': never(JSON.parse('{"args": {"__proto__": {}}}')),
  '{args: {deep: {constructor}}}': never({ args: { deep: [{ constructor: {} }] } }),
  '{reminder, __proto__}': never(JSON.parse('{"reminder": {"body": "b"}, "__proto__": {}}')),
};

/** The expected result of a return value at a point. */
export function expected(row: Row, point: HookPoint): string {
  if (!row.where.includes(point)) {
    // An invalid value is only examined at the points of its key.
    const own = { '{block: false}': VETO, '{decision: maybe}': ['permission_asked'], '{deny: true}': DENY };
    const home: Readonly<Record<string, readonly string[]>> = {
      ...own,
      '{args: list}': ARGS,
      '{messages: none}': ['transform_context'],
      '{job: nothing}': ADVISORY,
    };
    const name = Object.keys(ROWS).find((key) => ROWS[key] === row) as string;
    return home[name]?.includes(point) ? 'verdict_invalid' : row.elsewhere;
  }
  // No return value means no objection, except at a gate, where it means refusal.
  const means = point === 'gate_tool_calls' && row.means === 'no_objection' ? 'gate' : row.means;
  return row.reminders ? `${means}, ${row.reminders} reminders` : means;
}
