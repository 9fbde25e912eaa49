/**
 * Requests to suspend and to resume the session: commands, signals, and calls of the tool `park`. A suspension starts
 * after the open turn (guard `suspension_is_due`), so running and waiting calls of the turn end first, and it aborts none.
 * If the last seam of the turn delivers a message, the request of a call is dropped instead (`turnStarted`, runs/turns.ts).
 * If the run ends before, the request lapses (`lapsedSuspension`). A failed step that suspends the session: `stepEvolved`
 * (steps/steps.ts). The start and the end of a suspension: suspension.ts. A call with the status `parked` is something
 * else: it waits for an approval (approvals/approvals.ts).
 */

import {
  BOUNDS,
  type CallOutcome,
  type CallStatus,
  type ConsultOutcome,
  type ErrorCode,
  type EventOf,
  type SessionEvent,
  type SuspensionRequestFields,
  suspensionUntilProblem,
} from '@coxswain/protocol';
import { noteCommand, noteSourceCommand } from '../../core/command-memory.ts';
import type { Command } from '../../core/commands.ts';
import type { SessionContext } from '../../core/context.ts';
import {
  actorMember,
  controlOutcome,
  type Decision,
  events,
  reasonMember,
  reasonSuffix,
  reject,
} from '../../core/decision.ts';
import type { Placed } from '../../core/journal-place.ts';
import { isEnded, leafOf, type MachineState, topStateOf } from '../../machine/state.ts';
import { buildHookDecision, failsClosed } from '../hooks/answers.ts';
import type { RequestedSuspension } from './state.ts';

/**
 * Decides `suspend`. It is rejected without an active run, in its teardown, and if the session is suspended or about to
 * be.
 * @param atMs the time of its record, milliseconds since 1970, to check `until` (`suspensionUntilProblem`).
 */
export function decideSuspend(state: MachineState, input: Command<'suspend'>, atMs: number): Decision {
  const { context } = state;
  if (isEnded(state)) return reject(input, 'not_running', 'the session is not running');
  if (topStateOf(state) === 'tearing_down') return reject(input, 'not_running', 'the run is ending');
  // In `post_resume` the suspension has ended, and only its hooks are still called. It does not prevent the next one.
  const sleeps = topStateOf(state) === 'suspended' && leafOf(state) !== 'suspended.post_resume';
  if (sleeps || context.suspend)
    return reject(input, 'already_suspended', 'the session is already suspended, or about to be suspended');
  const fields = input.body;
  const problem = suspensionUntilProblem(fields, atMs);
  if (problem) return reject(input, 'invalid_field', `until: ${problem}`, { field: 'until' });
  return events(
    { type: 'suspend_requested', command_id: input.command_id, ...actorMember(input), ...requestFields(fields) },
    { ...controlOutcome(context.session_id, input, 'suspending'), ...reasonMember(fields.reason) },
  );
}

/**
 * Decides `resume`. Before the start of a suspension it withdraws the request. It is rejected without an active run, in an
 * aborting run, and if the session is neither suspended nor about to be.
 */
export function decideResume(state: MachineState, input: Command<'resume'>): Decision {
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

/**
 * Decides `signal`: it is stored until a suspension of this run waits for its name, which may be the case already. It
 * is rejected without an active run, in its teardown, and beyond the bound of stored signals.
 */
export function decideSignal(state: MachineState, input: Command<'signal'>): Decision {
  const { context } = state;
  if (isEnded(state)) return reject(input, 'not_running', 'the session is not running');
  if (context.aborting || topStateOf(state) === 'tearing_down')
    return reject(input, 'not_running', 'the run is ending');
  const { name, data } = input.body;
  const wakes = leafOf(state) === 'suspended.parked' && context.suspension?.signal === name;
  if (!wakes && context.signals.length >= BOUNDS.signalsStoredMax)
    return reject(
      input,
      'too_many_signals',
      `the session already stores ${BOUNDS.signalsStoredMax} signals, which is the limit`,
      { field: 'name' },
    );
  return events(
    {
      type: 'signal_received',
      command_id: input.command_id,
      name,
      ...(data === undefined ? {} : { data }),
      ...actorMember(input),
    },
    controlOutcome(context.session_id, input, wakes ? 'resumed' : 'stored'),
  );
}

/**
 * The outcome of a call; an error outcome instead if `until` of its request to suspend is not valid at `atMs`, or if the
 * request is not the first one. When the model made the call, it knew neither the time of the record nor other
 * requests.
 * @param atMs the time of the record, milliseconds since 1970.
 */
export function withoutInvalidSuspension(context: SessionContext, outcome: CallOutcome, atMs: number): CallOutcome {
  if (!outcome.park || context.aborting || outcome.status !== 'ok' || outcome.result.is_error) return outcome;
  const refused = suspensionRefusal(context, outcome.park, atMs);
  if (refused === null) return outcome;
  const { park: _, ...rest } = outcome;
  const { text, code } = refused;
  return { ...rest, status: 'error', result: { content: [{ type: 'text', text }], is_error: true, detail: { code } } };
}

function suspensionRefusal(
  { suspend, calls }: SessionContext,
  park: SuspensionRequestFields,
  atMs: number,
): { readonly text: string; readonly code: ErrorCode } | null {
  const problem = suspensionUntilProblem(park, atMs);
  if (problem !== null) return { text: `until: ${problem}. The session is not parked.`, code: 'invalid_field' };
  // An earlier call counts even if hooks still check its result.
  const earlier = suspend?.call_id ?? calls.find(({ returned }) => returned?.park)?.call_id;
  if (earlier === undefined && !suspend) return null;
  const who = earlier === undefined ? 'another request' : `call ${earlier}`;
  const text = `This request was ignored: ${who} already asked to park the session.`;
  return { text, code: 'already_suspended' };
}

/**
 * The `suspend_requested` event of a call that ended with `ok` and a request to suspend. None for any other call, after
 * another request, and in an aborting run.
 */
export function suspendRequestOfCall(
  context: SessionContext,
  { call_id, status, result, park }: Pick<CallOutcome, 'call_id' | 'result' | 'park'> & { readonly status: CallStatus },
): SessionEvent[] {
  if (!park || status !== 'ok' || result.is_error) return [];
  if (context.aborting || context.suspend) return [];
  return [{ type: 'suspend_requested', call_id, ...requestFields(park) }];
}

function requestFields(fields: SuspensionRequestFields): Omit<EventOf<'suspend_requested'>, 'type'> {
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

/**
 * The events after pre_suspend hooks: the first answer that blocks, or whose failure refuses (`failsClosed`), withdraws
 * the request. Otherwise there are none.
 */
export function afterPreSuspend(context: SessionContext, outcome: ConsultOutcome): SessionEvent[] {
  const { suspend } = context;
  // A resume has withdrawn the request while hooks were called, or the run is ending.
  if (!suspend || context.aborting) return [];
  for (const answer of outcome.answers) {
    const closed = failsClosed(context, answer);
    if (!closed && answer.verdict?.kind !== 'block') continue;
    const reason = answer.verdict?.kind === 'block' ? answer.verdict.reason : answer.failure?.message;
    return [
      buildHookDecision('pre_suspend', answer.hook, 'block', reason),
      notSuspended(context, suspend, answer.hook, reason),
    ];
  }
  return [];
}

// The requester is notified: a person by the outcome of the command, the model by a reminder, because its call has
// succeeded already.
function notSuspended(
  context: SessionContext,
  { command_id, call_id = '', actor }: RequestedSuspension,
  hook: string,
  reason: string | undefined,
): SessionEvent {
  const text = `Hook ${hook} denied the suspension of the session${reasonSuffix(reason)}.`;
  if (command_id !== undefined) {
    return {
      type: 'control_outcome',
      control: 'suspend',
      command_id,
      status: 'blocked',
      target: context.session_id,
      ...(actor ? { actor } : {}),
      reason: text,
    };
  }
  return {
    type: 'message_injected',
    command_id: call_id,
    origin: 'direct',
    seam: 'direct',
    turn: context.turn,
    message: { role: 'reminder', content: [{ type: 'text', text }] },
  };
}

/** A suspension was requested. */
export function suspendRequested(context: SessionContext, event: Placed<'suspend_requested'>): Partial<SessionContext> {
  const { type: _, n: __, at_ms: ___, ...suspend } = event;
  return { suspend, ...noteSourceCommand(context, event) };
}

/** The outcome of a suspend command. If it is `lapsed`, the run ended before the suspension started: the request is removed. */
export function suspendLapsed(_: SessionContext, event: EventOf<'control_outcome'>): Partial<SessionContext> {
  return event.status === 'lapsed' ? { suspend: null } : {};
}

/**
 * The change by the outcome of a resume command. `resumed` is noted, so that the suspension ends (`suspensionEnd`); without
 * a suspension, the request for one is withdrawn. Other outcomes change nothing.
 */
export function resumeTaken(
  { suspension }: SessionContext,
  event: EventOf<'control_outcome'>,
): Partial<SessionContext> {
  if (event.status !== 'resumed') return {};
  return suspension ? { suspension: { ...suspension, resumed_by: event.command_id } } : { suspend: null };
}

/** A signal is stored. */
export function signalReceived(context: SessionContext, event: EventOf<'signal_received'>): Partial<SessionContext> {
  const { command_id, name, data } = event;
  const signal = { command_id, name, ...(data === undefined ? {} : { data }) };
  return { signals: [...context.signals, signal], ...noteCommand(context, command_id) };
}
