/** What suspends a session and what wakes it: commands, signals, calls that park it, and timers. */

import {
  BOUNDS,
  type CallOutcome,
  type CallStatus,
  type CommandInput,
  type ErrorCode,
  type EventOf,
  type Json,
  type ParkingFields,
  parkingTimeProblem,
  type SessionEvent,
  type TimerInput,
} from '@coxswain/protocol';
import { approvalExpired } from './approvals.ts';
import type { SessionContext } from './context.ts';
import { by, type Decision, events, why } from './decision.ts';
import { timersOf } from './effects.ts';
import { waitedTooLong } from './persona-waits.ts';
import { controlOutcome, reject } from './rejection.ts';
import { isEnded, leafOf, type SessionState, topStateOf } from './state.ts';

/** Decides `suspend`, at the time of its record. */
export function decideSuspend(state: SessionState, input: CommandInput, atMs: number): Decision {
  const { context } = state;
  if (isEnded(state)) return reject(input, 'not_running', 'the session is not running');
  if (topStateOf(state) === 'tearing_down') return reject(input, 'not_running', 'the run is ending');
  // One that is over, and of which only hooks are still told, does not stand in the way of the next.
  const sleeps = topStateOf(state) === 'suspended' && leafOf(state) !== 'suspended.post_resume';
  if (sleeps || context.suspend)
    return reject(input, 'already_suspended', 'the session is already suspended, or about to be suspended');
  const fields = input.body as ParkingFields;
  const problem = parkingTimeProblem(fields, atMs);
  if (problem) return reject(input, 'invalid_field', `until: ${problem}`, { field: 'until' });
  return events(
    { type: 'suspend_requested', command_id: input.command_id, ...by(input), ...asked(fields) },
    { ...controlOutcome(context.session_id, input, 'suspending'), ...why(fields.reason) },
  );
}

/** Decides `resume`. One that comes before the suspension has taken hold withdraws it. */
export function decideResume(state: SessionState, input: CommandInput): Decision {
  const { context } = state;
  if (isEnded(state)) return reject(input, 'not_running', 'the run has ended; continue with `cox run --session`');
  if (
    context.aborting ||
    topStateOf(state) === 'tearing_down' ||
    (leafOf(state) !== 'suspended.parked' && context.suspend === null)
  )
    return reject(input, 'not_suspended', 'the session is not suspended');
  return events(controlOutcome(context.session_id, input, 'resumed'));
}

/** Decides `signal`: it is kept until a suspension waits for one of its name, which may be the case already. */
export function decideSignal(state: SessionState, input: CommandInput): Decision {
  const { context } = state;
  if (isEnded(state)) return reject(input, 'not_running', 'the session is not running');
  if (context.aborting || topStateOf(state) === 'tearing_down')
    return reject(input, 'not_running', 'the run is ending');
  const name = input.body.name as string;
  const wakes = leafOf(state) === 'suspended.parked' && context.suspension?.signal === name;
  if (!wakes && context.signals.length >= BOUNDS.signalsStoredMax)
    return reject(
      input,
      'too_many_signals',
      `the session already stores ${BOUNDS.signalsStoredMax} signals, which is the limit`,
      { field: 'name' },
    );
  const data = input.body.data as Json | undefined;
  return events(
    {
      type: 'signal_received',
      command_id: input.command_id,
      name,
      ...(data === undefined ? {} : { data }),
      ...by(input),
    },
    controlOutcome(context.session_id, input, wakes ? 'resumed' : 'stored'),
  );
}

/** Decides a due timer. One that the session does not wait for is dropped: none needs cancelling. */
export function decideTimer(state: SessionState, input: TimerInput): Decision {
  const timer = timersOf(state).find(({ id }) => id === input.effect_id);
  if (timer?.dueAtMs !== input.due_at_ms) return { kind: 'ignored', reason: `no pending timer ${input.effect_id}` };
  return events(
    { type: 'timer_fired', effect_id: timer.id, what: timer.what },
    ...(timer.what === 'approval' ? approvalExpired(state.context, timer.id) : []),
    ...(timer.what === 'waiting_for_persona' ? waitedTooLong(state.context) : []),
  );
}

/**
 * The outcome of a call as it stands once its request to park was looked at. The call's arguments cannot have known the
 * time of the record, nor what others have asked for: where its request is not taken, it has gone wrong.
 */
export function withoutBadParking(context: SessionContext, outcome: CallOutcome, atMs: number): CallOutcome {
  if (!outcome.park || context.aborting || outcome.status !== 'ok' || outcome.result.is_error) return outcome;
  const refused = parkingRefused(context, outcome.park, atMs);
  if (refused === null) return outcome;
  const { park: _, ...rest } = outcome;
  const { text, code } = refused;
  return { ...rest, status: 'error', result: { content: [{ type: 'text', text }], is_error: true, detail: { code } } };
}

function parkingRefused(
  { suspend, calls }: SessionContext,
  park: ParkingFields,
  atMs: number,
): { readonly text: string; readonly code: ErrorCode } | null {
  const problem = parkingTimeProblem(park, atMs);
  if (problem !== null) return { text: `until: ${problem}. The session is not parked.`, code: 'invalid_field' };
  // One that hooks have yet to see has come first all the same.
  const earlier = suspend?.call_id ?? calls.find(({ returned }) => returned?.park)?.call_id;
  if (earlier === undefined && !suspend) return null;
  const who = earlier === undefined ? 'another request' : `call ${earlier}`;
  const text = `This request was ignored: ${who} already asked to park the session.`;
  return { text, code: 'already_suspended' };
}

/** What a call that came to a good end asks of its session, where nothing else has asked for it before. */
export function parkRequested(
  context: SessionContext,
  { call_id, status, result, park }: Pick<CallOutcome, 'call_id' | 'result' | 'park'> & { readonly status: CallStatus },
): SessionEvent[] {
  if (!park || status !== 'ok' || result.is_error) return [];
  if (context.aborting || context.suspend) return [];
  return [{ type: 'suspend_requested', call_id, ...asked(park) }];
}

function asked(fields: ParkingFields): Omit<EventOf<'suspend_requested'>, 'type'> {
  const { reason, until, for_ms, signal, on_timeout, input } = fields;
  return {
    ...(reason === undefined ? {} : { reason }),
    ...(until === undefined ? {} : { until_ms: Date.parse(until) }),
    ...(for_ms === undefined ? {} : { for_ms }),
    ...(signal === undefined ? {} : { signal }),
    ...(on_timeout === undefined ? {} : { on_timeout }),
    ...(input === undefined ? {} : { input }),
  };
}
