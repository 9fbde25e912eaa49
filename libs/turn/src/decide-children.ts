/** Commands between sessions: a child begins, is cancelled, reports; a message arrives. */
import {
  BOUNDS,
  type CallOutcome,
  type CancelChildBody,
  type ChildEndedBody,
  type CommandInput,
  type DelegateArgs,
  type JsonObject,
  type MessageBody,
  type SessionEvent,
  type StartChildBody,
  sessionActor,
  userText,
} from '@coxswain/protocol';
import type { CallRow, SessionContext } from './context.ts';
import { copiedFrom } from './copied-session.ts';
import { decideInjection } from './decide-injections.ts';
import { type Decision, events, why } from './decision.ts';
import { shareOf } from './delegation.ts';
import { counted, type OpenChild } from './open-children.ts';
import { promptOfMessage } from './prompt-of-message.ts';
import * as q from './queries.ts';
import { reject } from './rejection.ts';
import { isEnded, type SessionState, topStateOf } from './state.ts';

/** A child's first record. */
export function decideStartChild({ context }: SessionState, input: CommandInput): Decision {
  if (context.run > 0) return reject(input, 'session_exists', 'the session already had a run');
  const { prompt, parent, reminders, ...settings } = input.body as unknown as StartChildBody;
  return events(
    ...copiedFrom(input),
    {
      type: 'prompt_received',
      command_id: input.command_id,
      run: 1,
      messages: [userText(prompt)],
      actor: sessionActor(parent.session),
      settings,
      parent,
    },
    ...reminders.map((reminder): SessionEvent => ({ type: 'reminder_inherited', ...reminder })),
  );
}

/** The parent's call is to end, and its child with it. What came after the child's first run is nobody's child. */
export function decideCancelChild(state: SessionState, input: CommandInput): Decision {
  const { context } = state;
  const { from, effect_id, reason } = input.body as unknown as CancelChildBody;
  if (context.parent?.session !== from || context.parent.effect_id !== effect_id)
    return reject(input, 'not_running', `session ${from} did not start this session with effect ${effect_id}`);
  if (isEnded(state) || context.run !== 1)
    return reject(input, 'not_running', 'the delegated run of this session has ended');
  return events({
    type: 'control_outcome',
    control: 'cancel',
    command_id: input.command_id,
    status: context.stop_reason === 'cancelled' ? 'already_cancelled' : 'cancelled',
    target: context.session_id,
    actor: sessionActor(from),
    ...why(reason),
  });
}

/** A child has ended: its call has its result, or the work is begun again; one that was given up is only counted. */
export function decideChildEnded(
  state: SessionState,
  input: CommandInput,
  atMs: number,
  decideCall: (context: SessionContext, outcome: CallOutcome) => Decision,
): Decision {
  const { context } = state;
  const report = input.body as unknown as ChildEndedBody;
  const child = context.children.find(({ effect_id }) => effect_id === report.effect_id);
  if (!child)
    return reject(input, 'call_not_open', `effect ${report.effect_id} has no open child session`, {
      field: 'effect_id',
    });
  const { session, stop_reason, turns, usage, nano_usd, error } = report;
  const ended = {
    type: 'child_ended',
    command_id: input.command_id,
    call_id: child.call_id,
    effect_id: child.effect_id,
    session,
    stop_reason,
    turns,
    usage,
    nano_usd,
    ...(error ? { error } : {}),
  } as const;
  const row = isEnded(state) ? undefined : q.callRow(context, child.call_id);
  if (row?.status !== 'running' || row.effect_id !== child.effect_id) return events(ended);
  if (isBegunAgain(context, row, child, report)) return events({ ...ended, restarts: true });
  const duration_ms = Math.max(0, atMs - child.started_at_ms);
  const { status, result } = report;
  const outcome = { type: 'call_outcome', call_id: row.call_id, effect_id: child.effect_id, status, result } as const;
  const decision = decideCall(context, { ...outcome, duration_ms });
  return decision.kind === 'events' ? events(ended, ...decision.events) : decision;
}

function isBegunAgain(context: SessionContext, row: CallRow, child: OpenChild, report: ChildEndedBody): boolean {
  const { restart = 'never', max_restarts = 1 } = row.args as unknown as DelegateArgs;
  if (report.stop_reason !== 'error' || restart !== 'on_failure' || child.restart >= max_restarts) return false;
  if (row.cancel || row.preempted || context.aborting) return false;
  const after = {
    ...context,
    children: context.children.filter((one) => one !== child),
    count: counted(context.count, report.usage, report.nano_usd),
  };
  return shareOf(after, row) !== null;
}

/** A message from another session: what its mode says, with its sender. */
export function decideMessage(state: SessionState, input: CommandInput, atMs: number): Decision {
  const { context } = state;
  const { from: session, hops, body, mode } = input.body as unknown as MessageBody;
  if (hops > BOUNDS.hopsMax)
    return reject(
      input,
      'too_many_hops',
      `the chain of messages between sessions has ${hops} hops; the limit is ${BOUNDS.hopsMax}`,
    );
  const from = { session, hops };
  const actor = sessionActor(session);
  if (mode === 'prompt' && isEnded(state) && !context.notice) {
    return events(promptOfMessage(context, { command_id: input.command_id, body, actor, from }));
  }
  const said: JsonObject = { body, from };
  // What a run takes no more must not wait for somebody else to begin the next.
  const begins =
    mode === 'prompt' && (isEnded(state) || topStateOf(state) === 'tearing_down') ? { begins_run: true } : {};
  const as =
    mode === 'followup' || mode === 'prompt'
      ? { verb: 'followup', body: { ...said, ...begins } }
      : { verb: 'steer', body: { ...said, mode: mode === 'interrupt' ? 'interrupt_immediate' : 'finish_step' } };
  return decideInjection(context, { ...input, ...as, actor }, atMs);
}
