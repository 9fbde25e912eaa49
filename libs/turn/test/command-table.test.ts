/** The table of commands, cell by cell: each verb in each kind of state in which a session can be. */
import { type JsonObject, VERBS } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { given } from './given.ts';
import {
  answered,
  approved,
  asked,
  call,
  callCancelled,
  cancelled,
  command,
  denied,
  followedUp,
  type Move,
  modelStopped,
  prompted,
  provisioned,
  reminded,
  replaced,
  resumed,
  revoked,
  started,
  steered,
  suspended,
  toolsClosed,
} from './moves.ts';

/** A queued message in every column that wakes no session. */
const WAITS = steered('waits', 'audit_only');

const begun: Move = [started(), steered('said'), provisioned()];
const sleeps = (until: JsonObject): Move => [begun, suspended('before', until), answered(), WAITS];

/** A session in each kind of state. Before that, `said` was delivered to it. */
const COLUMNS = {
  ended: [begun, answered(), toolsClosed, WAITS],
  running: [begun, asked(call('a', 'read')), WAITS],
  parked: [begun, asked(call('a', 'ask'), call('b', 'ask')), WAITS],
  suspended: sleeps({}),
  daemon_idle: [started(), steered('said'), provisioned({ daemon: true }), answered(), WAITS],
} satisfies Record<string, Move>;
type Column = keyof typeof COLUMNS;

/** Other ways to the same kinds: a cell without an entry for one of these is that of its kind. */
const VARIANTS = {
  'ended by a cancel': ['ended', [begun, cancelled('before'), modelStopped(), toolsClosed, WAITS]],
  'suspended until a time': ['suspended', sleeps({ for_ms: 3_600_000 })],
  'suspended until a signal': ['suspended', sleeps({ signal: 'go' })],
  'suspended until a signal or a time': ['suspended', sleeps({ signal: 'go', for_ms: 3_600_000, on_timeout: 'fail' })],
} satisfies Record<string, readonly [Column, Move]>;
type Variant = keyof typeof VARIANTS;

/** The lines of the answer, in order, among others. */
type Cell = readonly string[];
type Row = { readonly move: Move } & Readonly<Record<Column, Cell>> & Readonly<Partial<Record<Variant, Cell>>>;

const CELLS: readonly (readonly [name: string, way: Move, cell: (row: Row) => Cell])[] = [
  ...(Object.entries(COLUMNS) as [Column, Move][]).map(([name, way]) => [name, way, (row: Row) => row[name]] as const),
  ...(Object.entries(VARIANTS) as [Variant, readonly [Column, Move]][]).map(
    ([name, [kind, way]]) => [name, way, (row: Row) => row[name] ?? row[kind]] as const,
  ),
];

const inAll = (...lines: readonly string[]): Record<Column, readonly string[]> => ({
  ended: lines,
  running: lines,
  parked: lines,
  suspended: lines,
  daemon_idle: lines,
});
const refused = (code: string, id: string, control?: string): string[] => [
  `command_rejected ${code} ${id}`,
  ...(control === undefined ? [] : [`control_outcome ${control} ${code}`]),
];
/** The end of the wait for the signal `go`. */
const woken = (line: string): string[] => [line, 'control_outcome signal resumed', 'resumed signal x', 'turn_start 2'];

const TABLE = {
  start: {
    move: started({}, 'x'),
    ...inAll(...refused('session_busy', 'x')),
    ended: refused('session_exists', 'x'),
  },
  prompt: { move: prompted('x'), ...inAll(...refused('session_busy', 'x')), ended: ['prompt_received run 2'] },
  steer: {
    move: steered('x'),
    ...inAll('steering_received x finish_step'),
    daemon_idle: ['steering_received x finish_step', 'loop_checkpoint daemon_idle_post', 'turn_start 2'],
  },
  'steer that interrupts': {
    move: steered('x', 'interrupt'),
    ...inAll('steering_received x interrupt_immediate'),
    parked: ['steering_received x interrupt_immediate', 'loop_checkpoint pre_tool_dispatch delivers x skips a b'],
    suspended: ['steering_received x interrupt_immediate', 'resumed interrupt x', 'turn_start 2'],
    daemon_idle: ['steering_received x interrupt_immediate', 'loop_checkpoint daemon_idle_post delivers x'],
  },
  remind: {
    move: reminded('x'),
    ...inAll('reminder_injected x finish_step'),
    daemon_idle: ['reminder_injected x finish_step', 'loop_checkpoint daemon_idle_post', 'turn_start 2'],
  },
  followup: {
    move: followedUp('x'),
    ...inAll('followup_received x'),
    daemon_idle: ['followup_received x', 'message_injected x followup at steering_check', 'turn_start 2'],
  },
  'remind that interrupts': {
    move: reminded('x', 'interrupt'),
    ...inAll('reminder_injected x interrupt_immediate'),
    parked: ['reminder_injected x interrupt_immediate', 'loop_checkpoint pre_tool_dispatch delivers x skips a b'],
    suspended: ['reminder_injected x interrupt_immediate', 'resumed interrupt x', 'turn_start 2'],
    daemon_idle: ['reminder_injected x interrupt_immediate', 'loop_checkpoint daemon_idle_post delivers x'],
  },
  approve: {
    move: approved('a', {}, 'x'),
    ...inAll(...refused('call_unknown', 'x'), 'control_outcome approve call_unknown a'),
    ended: [...refused('not_pending', 'x'), 'control_outcome approve not_pending a'],
    running: [...refused('not_pending', 'x'), 'control_outcome approve not_pending a'],
    parked: ['approval_decided a allow', 'control_outcome approve allowed a', 'call_started a'],
  },
  'approve that denies': {
    move: denied('a', {}, 'x'),
    ...inAll(...refused('call_unknown', 'x'), 'control_outcome approve call_unknown a'),
    ended: [...refused('not_pending', 'x'), 'control_outcome approve not_pending a'],
    running: [...refused('not_pending', 'x'), 'control_outcome approve not_pending a'],
    parked: ['approval_decided a deny', 'control_outcome approve denied a', 'call_ended a denied by user'],
  },
  'approve of what was decided': {
    move: [denied('b', {}, 'w'), approved('b', {}, 'x')],
    ...inAll(...refused('call_unknown', 'x'), 'control_outcome approve call_unknown b'),
    ended: [...refused('not_pending', 'x'), 'control_outcome approve not_pending b'],
    parked: [...refused('already_decided', 'x'), 'control_outcome approve already_decided b'],
  },
  cancel: {
    move: cancelled('x'),
    ...inAll('control_outcome cancel cancelled'),
    ended: refused('not_running', 'x', 'cancel'),
    'ended by a cancel': refused('already_cancelled', 'x', 'cancel'),
  },
  cancel_call: {
    move: callCancelled('a', {}, 'x'),
    ...inAll('control_outcome cancel_call not_found a'),
    running: ['call_cancel_requested a'],
    parked: ['approval_decided a superseded', 'call_ended a cancelled', 'control_outcome cancel_call cancelled a'],
  },
  suspend: {
    move: suspended('x'),
    ...inAll('control_outcome suspend suspending'),
    ended: refused('not_running', 'x', 'suspend'),
    suspended: refused('already_suspended', 'x', 'suspend'),
    daemon_idle: ['control_outcome suspend suspending', 'suspended x'],
  },
  resume: {
    move: resumed('x'),
    ...inAll(...refused('not_suspended', 'x', 'resume')),
    ended: refused('not_running', 'x', 'resume'),
    suspended: ['control_outcome resume resumed', 'resumed command x'],
  },
  signal: {
    move: command('signal', 'x', { name: 'go' }),
    ...inAll('signal_received go x', 'control_outcome signal stored'),
    ended: refused('not_running', 'x', 'signal'),
    'suspended until a signal': woken('signal_received go x'),
    'suspended until a signal or a time': woken('signal_received go x'),
  },
  'signal of another name': {
    move: command('signal', 'x', { name: 'other' }),
    ...inAll('signal_received other x', 'control_outcome signal stored'),
    ended: refused('not_running', 'x', 'signal'),
  },
  // The host deletes an ended session: no record contains it.
  delete: { move: command('delete', 'x', {}), ...inAll(...refused('session_busy', 'x')), ended: [] },
  revoke: { move: revoked('waits', 'x'), ...inAll('control_outcome revoke revoked waits') },
  'revoke of what was delivered': {
    move: revoked('said', 'x'),
    ...inAll(...refused('already_delivered', 'x'), 'control_outcome revoke already_delivered said'),
  },
  'revoke of what was revoked': {
    move: [revoked('waits', 'w'), revoked('waits', 'x')],
    ...inAll(...refused('already_revoked', 'x'), 'control_outcome revoke already_revoked waits'),
  },
  'revoke of nothing': {
    move: revoked('nothing', 'x'),
    ...inAll(...refused('unknown_command_id', 'x'), 'control_outcome revoke unknown_command_id nothing'),
  },
  replace: { move: replaced('waits', 'rather', 'x'), ...inAll('control_outcome replace replaced waits') },
  'replace of what was delivered': {
    move: replaced('said', 'rather', 'x'),
    ...inAll(...refused('already_delivered', 'x'), 'control_outcome replace already_delivered said'),
  },
  'replace of what was revoked': {
    move: [revoked('waits', 'w'), replaced('waits', 'rather', 'x')],
    ...inAll(...refused('already_revoked', 'x'), 'control_outcome replace already_revoked waits'),
  },
  'replace of nothing': {
    move: replaced('nothing', 'rather', 'x'),
    ...inAll(...refused('unknown_command_id', 'x'), 'control_outcome replace unknown_command_id nothing'),
  },
} satisfies Record<string, Row>;

describe.each(Object.entries<Row>(TABLE))('%s', (_verb, row) => {
  test.each(CELLS)('in a session that is %s', (name, way, cell) => {
    const lines = cell(row);
    const outcome = given(way)
      .when(row.move)
      .thenIncludes(...lines);
    // A queued message wakes no session.
    if (name.startsWith('suspended') && !lines.some((line) => line.startsWith('resumed'))) outcome.thenNever('resumed');
  });
});

describe('the table', () => {
  test('has a row for every verb', () => {
    const rows = new Set(Object.keys(TABLE).map((name) => name.split(' ')[0]));
    expect(VERBS.filter((verb) => !rows.has(verb))).toEqual([]);
  });
});
