/** Hooks at every point: answers, vetoes, rewrites, failures. */
import type { HookPoint, HookRegistration, JsonObject } from '@coxswain/protocol';
import { ask, type Scenario, say, type TracedHook } from '../scenario.ts';
import { asking } from '../stage.ts';

/** A hook of a scenario, by its point. */
export const at = (
  point: HookPoint,
  returns?: unknown,
  more: Partial<HookRegistration> & { afterMs?: number } = {},
): TracedHook => {
  const { afterMs, id = point, ...registration } = more;
  return {
    registration: { id, point, ...registration },
    ...(returns === undefined ? {} : { returns }),
    ...(afterMs === undefined ? {} : { afterMs }),
  };
};

/** A guard that knows whose word it takes. */
const notFromAshore = ({ prompt }: JsonObject) =>
  String(prompt).includes('from ashore') ? { block: true, reason: 'no orders from ashore' } : true;

/** See the top of the file. */
export const HOOKS: readonly Scenario[] = [
  {
    name: 'hooks-at-every-point',
    shows: 'every point is consulted once and nobody objects; a permission hook answers in place of a person',
    turns: [ask(['look', { at: 'the bow' }]), say('Clear.')],
    tools: ['look'],
    hooks: [
      at('session_start'),
      at('user_prompt_submit'),
      at('PreToolUse', true),
      at('gate_tool_calls', [{ allow: true }]),
      at('permission_asked', { decision: 'allow', reason: 'harmless' }),
      at('PostToolUse', null),
      at('post_turn'),
      at('session_end'),
    ],
    async play(stage) {
      await stage.host();
      await stage.start({ permissions: asking('look') });
    },
  },
  {
    name: 'hooks-on-edited-files',
    shows: 'each file that a batch edited is shown once to hooks at the end of its turn, in the order of their names',
    turns: [ask(['log', { books: ['log/day', 'log/cargo'] }], ['log', { books: ['log/day'] }]), say('Written up.')],
    tools: ['log'],
    hooks: [at('post_turn'), at('file_edited')],
    async play(stage) {
      await stage.host();
      await stage.start();
    },
  },
  {
    name: 'hooks-on-files-edited-last',
    shows: 'a run that a tool ends, or a person, still shows hooks the files that its last turn edited',
    turns: [ask(['log', { books: ['log/day'] }], ['haul', { ms: 10_000 }])],
    tools: ['log', 'haul'],
    hooks: [at('file_edited')],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.send('cancel', { reason: 'fog' });
    },
  },
  {
    name: 'hooks-around-the-end',
    shows:
      'a run that failed while a follow-up waited: session_error, session_end, pre_finish, what is unsettled, post_finish',
    turns: [say('We are aground and', { delay_ms: 100, fail: { kind: 'garbage' } })],
    hooks: [
      at('post_finish'),
      at('on_unsettled_detected'),
      at('pre_finish'),
      at('pre_finish', { block: true }, { id: 'objects' }),
      at('session_end'),
      at('session_error'),
    ],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.send('followup', 'Then coal her.');
      await stage.wait(200);
    },
  },
  {
    name: 'hooks-block-the-prompt',
    shows: 'a prompt is blocked before any model sees it; hooks behind the veto are not asked',
    turns: [say('Never said.')],
    hooks: [
      at('user_prompt_submit', { block: true, reason: 'no orders from ashore' }, { id: 'first' }),
      at('user_prompt_submit', undefined, { id: 'second', priority: 1 }),
      at('session_end'),
    ],
    async play(stage) {
      await stage.host();
      await stage.start();
    },
  },
  {
    name: 'hooks-guard-the-door',
    shows:
      'a guard is asked about a steer, an interrupt and two follow-ups; a call waits for its verdict, and so does the end',
    turns: [
      { ...ask(['haul', { ms: 10 }]), delay_ms: 100 },
      say('Stopped. Ready.', { delay_ms: 100 }),
      say('And the log is written.'),
    ],
    tools: ['haul'],
    hooks: [at('user_prompt_submit', notFromAshore, { id: 'door', afterMs: 60 })],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.wait(60);
      await stage.send('steer', { body: 'Word from ashore: come about.' });
      await stage.send('steer', { body: 'Avast!', mode: 'interrupt' });
      await stage.wait(150);
      await stage.send('followup', { body: 'Word from ashore: and now home.' });
      await stage.send('followup', { body: 'Write the log.' });
      await stage.wait(400);
    },
  },
  {
    name: 'hooks-guard-a-sleeper',
    shows:
      'what came while the session was suspended is blocked after it was resumed: the run ends without a turn for it',
    turns: [say('Moored.', { delay_ms: 100 })],
    hooks: [at('user_prompt_submit', notFromAshore, { id: 'door', afterMs: 60 })],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.wait(60);
      await stage.send('suspend');
      await stage.wait(100);
      await stage.send('steer', { body: 'Word from ashore: cast off.' });
      await stage.send('resume');
      await stage.wait(100);
    },
  },
  {
    name: 'hooks-veto-a-call',
    shows: 'PreToolUse denies a call, fails open at a second and closed at a third; then it denies a whole batch',
    turns: [
      ask(['haul', { ms: 10 }], ['look', { at: 'the bow' }], ['sound', { ms: 1 }]),
      ask(['haul', { ms: 10 }]),
      say('Only looked.'),
    ],
    tools: ['haul', 'look', 'sound'],
    hooks: [
      at('PreToolUse', { deny: 'not on Sundays' }, { id: 'deny', pattern: 'haul' }),
      at('PreToolUse', new Error('asleep'), { id: 'open', pattern: 'look', on_error: 'fail_open' }),
      at('PreToolUse', { denied: 'misspelt' }, { id: 'closed', pattern: 'sound' }),
    ],
    async play(stage) {
      await stage.host();
      await stage.start();
    },
  },
  {
    name: 'hooks-rewrite-arguments',
    shows: 'two PreToolUse hooks rewrite one after the other; a rewrite that does not fit the schema refuses the call',
    turns: [ask(['haul', { ms: 900 }], ['look', { at: 'the bow' }]), say('Done.')],
    tools: ['haul', 'look'],
    hooks: [
      at('PreToolUse', { args: { ms: 20 } }, { id: 'shorten', pattern: 'haul' }),
      at('PreToolUse', { args: { ms: 10 } }, { id: 'halve', pattern: 'haul', priority: 1 }),
      at('PreToolUse', { args: { where: 'aft' } }, { id: 'misspell', pattern: 'look' }),
    ],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.wait(100);
    },
  },
  {
    name: 'hooks-gate-a-batch',
    shows: 'the gate allows one call, refuses one, and gives a third no valid answer, which refuses it',
    turns: [ask(['look', { at: 'a' }], ['look', { at: 'b' }], ['look', { at: 'c' }]), say('Done.')],
    tools: ['look'],
    hooks: [at('gate_tool_calls', [{ allow: true }, { allow: false, reason: 'too far' }, 'yes'])],
    async play(stage) {
      await stage.host();
      await stage.start();
    },
  },
  {
    name: 'hooks-decide-permissions',
    shows: 'a permission hook denies one call, leaves one to a person and fails closed on a third',
    turns: [ask(['haul', { ms: 10 }], ['look', { at: 'the bow' }], ['sound', { ms: 1 }]), say('Done.')],
    tools: ['haul', 'look', 'sound'],
    hooks: [
      at('PreToolUse', undefined, { pattern: 'sound' }),
      at('permission_asked', { decision: 'deny', reason: 'not now' }, { id: 'haul', pattern: 'haul' }),
      at('permission_asked', { decision: 'ask' }, { id: 'look', pattern: 'look' }),
      at('permission_asked', new Error('asleep'), { id: 'sound', pattern: 'sound' }),
    ],
    async play(stage) {
      await stage.host();
      await stage.start({ permissions: asking('haul', 'look', 'sound') });
      await stage.send('approve', { call_id: 'c1_2', decision: 'allow' });
    },
  },
  {
    name: 'hooks-rewrite-results',
    shows: 'PostToolUse hooks rewrite a result, turn an error into an answer, and withhold what they failed to see',
    turns: [ask(['look', { at: 'the bow' }], ['snag'], ['sound', { ms: 10 }]), say('Done.')],
    tools: ['look', 'snag', 'sound'],
    hooks: [
      at('PostToolUse', 'A buoy at the bow.', { id: 'look', pattern: 'look' }),
      at('PostToolUse', { result: 'Cleared.', is_error: false }, { id: 'snag', pattern: 'snag' }),
      at('PostToolUse', undefined, { id: 'sound', pattern: 'sound', timeout_ms: 100, afterMs: 9_000 }),
    ],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.wait(1_000);
    },
  },
  {
    name: 'hooks-interrupted',
    shows:
      'an interrupt that arrives while hooks are asked about a call stops it at the second pass of the seam, after the gate',
    turns: [ask(['look', { at: 'the bow' }]), say('Stopped.')],
    tools: ['look'],
    hooks: [at('PreToolUse', undefined, { afterMs: 100 }), at('gate_tool_calls', [{ allow: true }]), at('post_turn')],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.send('steer', { body: 'Avast!', mode: 'interrupt' });
      await stage.wait(200);
    },
  },
  {
    name: 'hooks-cancelled',
    shows: 'the run is cancelled while a hook is asked about a call: the call is not run, the last hook is still asked',
    turns: [ask(['look', { at: 'the bow' }])],
    tools: ['look'],
    hooks: [at('session_start', { block: true }), at('PreToolUse', undefined, { afterMs: 1_000 }), at('session_end')],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.wait(100);
      await stage.send('cancel', { reason: 'fog' });
      await stage.wait(100);
    },
  },
];
