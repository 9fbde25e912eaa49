/** The table of commands, cell by cell: each verb in each kind of state in which a session can be. */
import { NOT_YET, parseBody, VERBS, type Verb } from '@coxswain/protocol';
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
  followedUp,
  type Move,
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

/** What waits in every column, and wakes nobody. */
const WAITS = steered('waits', 'audit_only');

/** A session in each kind of state. Before that, `said` was delivered to it. */
const COLUMNS = {
  ended: [started(), steered('said'), provisioned(), answered(), toolsClosed, WAITS],
  running: [started(), steered('said'), provisioned(), asked(call('a', 'read')), WAITS],
  parked: [started(), steered('said'), provisioned(), asked(call('a', 'ask')), WAITS],
  suspended: [started(), steered('said'), provisioned(), suspended('before'), answered(), WAITS],
  daemon_idle: [started(), steered('said'), provisioned({ daemon: true }), answered(), WAITS],
} satisfies Record<string, Move>;
type Column = keyof typeof COLUMNS;
const COLUMN_NAMES = Object.keys(COLUMNS) as Column[];

/** The lines with which a cell answers, in order, among others. */
type Row = { readonly move: Move } & Readonly<Record<Column, readonly string[]>>;

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
    parked: ['steering_received x interrupt_immediate', 'loop_checkpoint pre_tool_dispatch delivers x skips a'],
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
  approve: {
    move: approved('a', {}, 'x'),
    ...inAll(...refused('call_unknown', 'x')),
    ended: refused('not_pending', 'x'),
    running: refused('not_pending', 'x'),
    parked: ['approval_decided a allow', 'call_started a'],
  },
  cancel: {
    move: cancelled('x'),
    ...inAll('control_outcome cancel cancelled'),
    ended: refused('not_running', 'x', 'cancel'),
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
    ...inAll('signal_received go x'),
    ended: refused('not_running', 'x'),
  },
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

/** What a later release carries out, with a body that is otherwise well-formed. It has no cells until then. */
const LATER: Readonly<Record<string, readonly [Verb, object]>> = {
  delete: ['delete', {}],
  'approve: remember': ['approve', { call_id: 'a', decision: 'allow', remember: 'session' }],
};

describe.each(Object.entries(TABLE))('%s', (_verb, row) => {
  test.each(COLUMN_NAMES)('in a session that is %s', (column) => {
    given(COLUMNS[column])
      .when(row.move)
      .thenIncludes(...row[column]);
  });
});

describe('the table', () => {
  test('has a row for every verb that this release carries out', () => {
    const rows = new Set(Object.keys(TABLE).map((name) => name.split(' ')[0]));
    expect(VERBS.filter((verb) => !rows.has(verb))).toEqual(VERBS.filter((verb) => NOT_YET[verb] === true));
  });

  test.each(Object.entries(LATER))('has no cells yet for %s: it is refused by name', (_name, [verb, body]) => {
    expect(parseBody(verb, body)).toMatchObject({ ok: false, problem: { code: 'not_yet_available' } });
  });

  test('names here all that is not carried out yet', () => {
    const fields = Object.entries(NOT_YET).flatMap(([verb, keys]) =>
      keys === true ? [verb] : keys.map((key) => `${verb}: ${key}`),
    );
    expect(fields.filter((name) => !Object.hasOwn(LATER, name))).toEqual([]);
  });
});
