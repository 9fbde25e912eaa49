/**
 * Every control has one outcome in the journal: actor, target and status.
 */
import { ControlVerb, type JsonObject, type Verb } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { given } from './given.ts';
import {
  answered,
  command,
  type Move,
  malformed,
  modelStopped,
  returned,
  running,
  steered,
  suspended,
  toolsClosed,
} from './moves.ts';
import { calling } from './openings.ts';

const ADA = { name: 'ada', verified: false };
const parked = calling('ask');
const inFlight = calling('read');
const ended: Move = [running(), answered(), toolsClosed];

type Case = readonly [verb: Verb, body: JsonObject, way: Move, then: Move, target: string, status: string];

const CARRIED_OUT: readonly Case[] = [
  ['approve', { call_id: 'a', decision: 'allow' }, parked, [], 'a', 'allowed'],
  ['approve', { call_id: 'a', decision: 'deny' }, parked, [], 'a', 'denied'],
  ['cancel', {}, running(), modelStopped(), 's1', 'cancelled'],
  ['cancel_call', { call_id: 'a' }, parked, [], 'a', 'cancelled'],
  ['cancel_call', { call_id: 'a' }, inFlight, returned('a', 'cancelled'), 'a', 'cancelled'],
  ['cancel_call', { call_id: 'a' }, inFlight, returned('a', 'cancelled', { timed_out: true }), 'a', 'timeout'],
  ['cancel_call', { call_id: 'z' }, inFlight, [], 'z', 'not_found'],
  ['suspend', {}, running(), [], 's1', 'suspending'],
  ['resume', {}, [running(), suspended(), answered()], [], 's1', 'resumed'],
  ['signal', { name: 'go' }, running(), [], 's1', 'stored'],
  ['signal', { name: 'go' }, [running(), suspended('s', { signal: 'go' }), answered()], [], 's1', 'resumed'],
  ['revoke', { command_id: 'm' }, [running(), steered('m')], [], 'm', 'revoked'],
  ['replace', { command_id: 'm', body: 'x' }, [running(), steered('m')], [], 'm', 'replaced'],
];

const REFUSED: readonly Case[] = [
  ['approve', { call_id: 'a', decision: 'allow' }, inFlight, [], 'a', 'not_pending'],
  ['approve', { call_id: 'z', decision: 'deny' }, parked, [], 'z', 'call_unknown'],
  ['cancel', {}, ended, [], 's1', 'not_running'],
  ['suspend', {}, [running(), suspended()], [], 's1', 'already_suspended'],
  ['suspend', { until: '1970-01-01T00:00:00Z' }, running(), [], 's1', 'invalid_field'],
  ['resume', {}, running(), [], 's1', 'not_suspended'],
  ['signal', { name: 'go' }, ended, [], 's1', 'not_running'],
  ['revoke', { command_id: 'm' }, running(), [], 'm', 'unknown_command_id'],
  ['replace', { command_id: 'm', body: 'x' }, running(), [], 'm', 'unknown_command_id'],
];

const name = ([verb, body, , , , status]: Case) => `${verb} ${JSON.stringify(body)}: ${status}`;

describe.each([...CARRIED_OUT, ...REFUSED].map((one) => [name(one), one] as const))('%s', (_name, one) => {
  const [verb, body, way, then, target, status] = one;
  test('is recorded once, with actor, target and status', () => {
    const outcome = given(way).when(command(verb, 'x', body, 'ada'), then);
    const outcomes = outcome.session.steps
      .flatMap(({ events }) => events)
      .filter((event) => event.type === 'control_outcome' && event.command_id === 'x');
    expect(outcomes).toHaveLength(1);
    expect(outcomes[0]).toMatchObject({ control: verb, target, status, actor: ADA });
  });
});

test('the cases above contain every control', () => {
  expect([...new Set(CARRIED_OUT.map(([verb]) => verb))].sort()).toEqual([...ControlVerb.options].sort());
  // A failed cancellation has its own outcome: cancel_call is rejected only if it is unreadable.
  expect(new Set([...REFUSED.map(([verb]) => verb), 'cancel_call'])).toEqual(new Set(ControlVerb.options));
});

test.each(ControlVerb.options)('an unreadable %s has the session as target', (verb) => {
  given(running())
    .when(malformed(verb, 'x', 'unknown_field'))
    .thenRejected('unknown_field')
    .thenEvent('control_outcome', { control: verb, command_id: 'x', target: 's1', status: 'unknown_field' });
});

test('an approve with invalid arguments for its tool names the call', () => {
  const approve = command('approve', 'x', { call_id: 'a', decision: 'allow', args: {} }, 'ada');
  given(parked)
    .when({ ...approve, problem: { code: 'invalid_arguments', message: 'no', field: 'args' } })
    .thenRejected('invalid_arguments')
    .thenEvent('control_outcome', { control: 'approve', target: 'a', status: 'invalid_arguments', actor: ADA });
});

test('a message to a model is not a control', () => {
  given(running())
    .when(steered('m'), malformed('steer', 'x', 'invalid_json'))
    .thenJournal('steering_received m finish_step', 'command_rejected invalid_json x');
});
