/**
 * Which steers, reminders and follow-ups are queued, and how queued ones are collapsed, revoked and replaced. The context
 * has two lists: `followups`, and `pending` for steers and reminders. Bounds and error codes with "pending" in their names
 * apply to both lists together. Delivery: `dueAt` and `nextFollowupEvent` (seam-passes.ts). Check by hooks: message-hooks.ts.
 *
 * QUEUE-1  Queued messages with the same dedupe key and kind collapse into one: the newest, at the position of the
 *     oldest.
 * QUEUE-2  A delivered message cannot be revoked, but a reminder that prompts still show can be cleared.
 */

import {
  BOUNDS,
  type EventOf,
  type InjectionVerb,
  type MessageSource,
  type ReminderFields,
  type SessionEvent,
} from '@coxswain/protocol';
import { noteCommand } from '../../core/command-memory.ts';
import type { Command } from '../../core/commands.ts';
import type { SessionContext } from '../../core/context.ts';
import { type CommandHead, controlOutcome, type Decision, events, reject } from '../../core/decision.ts';
import type { Placed } from '../../core/journal-place.ts';
import { supersededBy } from '../reminders/reminders.ts';
import { interruptMark } from '../suspension/suspension.ts';
import { CHANNEL_OF_EVENT, type QueueingEvent } from './channels.ts';
import { preemptOpenWork } from './preempt.ts';
import type { PendingFollowup, PendingInjection } from './state.ts';
import { bodyBytes, needsHookVerdict, queuedBytes, reminderBytes, textBytes } from './waiting.ts';

/** A command that queues a message. */
type InjectionCommand = Command<InjectionVerb>;

/** Members of a queued message that no body of a steer, reminder or follow-up has: the machine sets them. */
export interface InjectionOrigin {
  readonly from?: MessageSource | undefined;
  readonly begins_run?: true | undefined;
}

/**
 * Decides `steer`, `remind` and `followup`, in every state of the session. The message is queued. It is rejected if it would
 * exceed a bound of the queues or of the reminders. It replaces a queued message of its kind with its dedupe key (QUEUE-1).
 */
export function decideInjection(
  context: SessionContext,
  input: InjectionCommand,
  atMs: number,
  origin: InjectionOrigin = {},
): Decision {
  const { command_id, body, verb } = input;
  const { dedupe_key: dedupeKey } = body;
  const older = dedupeKey === undefined ? undefined : waitingUnder(context, verb, dedupeKey);
  if (!older && context.pending.length + context.followups.length >= BOUNDS.pendingInjectionsMax)
    return reject(
      input,
      'too_many_pending',
      `the session already has ${BOUNDS.pendingInjectionsMax} queued messages, which is the limit`,
    );
  const bytes = textBytes(body.body);
  const full = fullProblem(context, bytes, older);
  if (full !== null) return reject(input, 'pending_full', full);
  const superseded = input.verb === 'remind' ? supersededBy(context, { command_id, ...input.body }) : undefined;
  const takesNoRoom = older !== undefined || superseded !== undefined;
  if (verb === 'remind' && !takesNoRoom && reminderCount(context) >= BOUNDS.remindersLiveMax)
    return reject(
      input,
      'too_many_reminders',
      `the session already has ${BOUNDS.remindersLiveMax} queued or visible reminders, which is the limit`,
    );
  const tooLarge = verb === 'remind' ? remindersProblem(context, bytes, [older, superseded]) : null;
  if (tooLarge !== null) return reject(input, 'too_many_reminders', tooLarge);
  const received = receivedEvent(input, new Date(atMs).toISOString(), origin);
  if (!older || dedupeKey === undefined) return events(received);
  return events(received, {
    type: 'injection_collapsed',
    command_id: older.command_id,
    into: command_id,
    dedupe_key: dedupeKey,
  });
}

/**
 * Why the queues have no room for a text of this size, or null.
 * @param replaced the queued message that the text replaces, if there is one.
 */
function fullProblem(
  context: SessionContext,
  bytes: number,
  replaced: PendingInjection | PendingFollowup | undefined,
): string | null {
  const waiting = queuedBytes(context) - (replaced ? bodyBytes(replaced) : 0);
  if (waiting + bytes <= BOUNDS.pendingInjectionsMaxBytes) return null;
  return `queued messages have ${waiting} bytes, and this one has ${bytes}; together they may have at most ${BOUNDS.pendingInjectionsMaxBytes} bytes`;
}

/**
 * Why the reminders have no room for a text of this size, or null.
 * @param replaced the queued and the live reminder that it replaces, if there are such.
 */
function remindersProblem(
  context: SessionContext,
  bytes: number,
  replaced: readonly ({ readonly body: string } | undefined)[],
): string | null {
  const freed = replaced.reduce((sum, one) => sum + (one ? bodyBytes(one) : 0), 0);
  if (reminderBytes(context) - freed + bytes <= BOUNDS.remindersLiveMaxBytes) return null;
  return `this reminder has ${bytes} bytes; queued and visible reminders together may have at most ${BOUNDS.remindersLiveMaxBytes} bytes`;
}

function receivedEvent(input: InjectionCommand, at: string, { from, begins_run }: InjectionOrigin): SessionEvent {
  const { body, dedupe_key } = input.body;
  const head = { command_id: input.command_id, body, ...(dedupe_key === undefined ? {} : { dedupe_key }) };
  const tail = { ...(from ? { from } : {}), ...(input.actor ? { actor: input.actor } : {}), at };
  if (input.verb === 'followup')
    return { type: 'followup_received', ...head, ...(begins_run ? { begins_run } : {}), ...tail };
  const { mode, preempt } = input.body;
  const preempts = preempt === true ? { preempt } : {};
  if (input.verb === 'steer') return { type: 'steering_received', ...head, mode, ...preempts, ...tail };
  return { type: 'reminder_injected', ...head, mode, ...preempts, ...reminderFields(input.body), ...tail };
}

// Records of earlier releases have bodies without some defaults.
function reminderFields(body: Command<'remind'>['body']): ReminderFields {
  const { tags = [], ttl_turns, preserve_on_compact = false, propagate = 'session', role_hint = 'system' } = body;
  return { tags, ...(ttl_turns === undefined ? {} : { ttl_turns }), preserve_on_compact, propagate, role_hint };
}

// A user message never replaces a reminder, nor a reminder a user message, so each kind has its own keys.
function waitingUnder(
  context: SessionContext,
  verb: string,
  dedupeKey: string,
): PendingInjection | PendingFollowup | undefined {
  return verb === 'followup'
    ? context.followups.find((followup) => followup.dedupe_key === dedupeKey)
    : context.pending.find((injection) => injection.kind === verb && injection.dedupe_key === dedupeKey);
}

function reminderCount(context: SessionContext): number {
  return context.reminders.length + context.pending.filter(({ kind }) => kind === 'remind').length;
}

/** Decides `revoke`: removes a queued message, or clears a live reminder. Any other target is rejected. */
export function decideRevoke(context: SessionContext, input: Command<'revoke'>): Decision {
  const target = input.body.command_id;
  const fate = injectionFate(context, target);
  if (fate !== 'waiting' && fate !== 'live') return rejectFate(input, target, fate);
  const outcome = controlOutcome(context.session_id, input, 'revoked');
  return fate === 'live'
    ? events(outcome, { type: 'reminder_expired', command_id: target, reason: 'cleared' })
    : events(outcome);
}

/**
 * Decides `replace`: changes the text of a queued message, which keeps its place and its id. It is rejected for any other
 * target, and beyond a bound of the queues or of the reminders.
 */
export function decideReplace(context: SessionContext, input: Command<'replace'>): Decision {
  const target = input.body.command_id;
  const fate = injectionFate(context, target);
  if (fate !== 'waiting') return rejectFate(input, target, fate === 'live' ? 'delivered' : fate);
  const body = input.body.body;
  const bytes = textBytes(body);
  const isTarget = ({ command_id }: { readonly command_id: string }) => command_id === target;
  const injection = context.pending.find(isTarget);
  const full = fullProblem(context, bytes, injection ?? context.followups.find(isTarget));
  if (full !== null) return reject(input, 'pending_full', full);
  const tooLarge =
    injection?.kind === 'remind'
      ? remindersProblem(context, bytes, [injection, supersededBy(context, injection)])
      : null;
  if (tooLarge !== null) return reject(input, 'too_many_reminders', tooLarge);
  return events({ ...controlOutcome(context.session_id, input, 'replaced'), body });
}

function rejectFate(input: CommandHead, target: string, fate: 'delivered' | 'revoked' | 'unknown'): Decision {
  const field = { field: 'command_id' };
  switch (fate) {
    case 'delivered':
      return reject(input, 'already_delivered', `${target} is already in the transcript`, field);
    case 'revoked':
      return reject(
        input,
        'already_revoked',
        `${target} is no longer queued: it was revoked, cleared, blocked or collapsed into a newer message`,
        field,
      );
    case 'unknown':
      return reject(input, 'unknown_command_id', `there is no queued message with the id ${target}`, field);
  }
}

/** Suffix of a message's id in `command_ids`, while it is queued and after its delivery. */
const INJECTION = '~';

/** The suffix after the message was revoked, cleared, blocked or collapsed. */
const REVOKED = '~revoked';

/** The entry of a queued or delivered message in `command_ids`. */
export function injectionEntry(commandId: string): string {
  return `${commandId}${INJECTION}`;
}

/** Whether a preempting message must wait for its verdict before it ends running work. */
function preemptsAfterVerdict(context: SessionContext, event: EventOf<QueueingEvent>): boolean {
  return 'preempt' in event && event.preempt === true && needsHookVerdict(context, CHANNEL_OF_EVENT[event.type]);
}

/**
 * The change by a new message: it is queued. A direct reminder of a hook is in `delivering` instead, without a seam.
 */
function queueInjection(context: SessionContext, event: EventOf<QueueingEvent>): Partial<SessionContext> {
  const { command_id, body, actor, at, dedupe_key } = event;
  const from = 'from' in event && event.from ? { from: event.from } : {};
  const head = { command_id, body, actor, at, ...(dedupe_key === undefined ? {} : { dedupe_key }), ...from };
  if (event.type === 'followup_received') {
    const begins = event.begins_run ? { begins_run: event.begins_run } : {};
    return { followups: [...context.followups, { ...head, ...begins }] };
  }
  const { mode } = event;
  // If hooks must check the message, `guardEnded` (message-hooks.ts) marks it once they accept it.
  const interrupts = needsHookVerdict(context, CHANNEL_OF_EVENT[event.type]) ? {} : interruptMark(context, event);
  if (event.type === 'steering_received') {
    const preempt = preemptsAfterVerdict(context, event) ? { preempt: true as const } : {};
    return { pending: [...context.pending, { ...head, kind: 'steer', mode, ...preempt, ...interrupts }] };
  }
  const { tags, ttl_turns, preserve_on_compact, propagate, role_hint } = event;
  const reminder = {
    tags,
    ...(ttl_turns === undefined ? {} : { ttl_turns }),
    preserve_on_compact,
    propagate,
    role_hint,
  };
  const waiting = { ...head, kind: 'remind', mode, reminder } as const;
  if (event.direct) return { delivering: [...context.delivering, waiting] };
  return { pending: [...context.pending, { ...waiting, ...interrupts }] };
}

/** The newer of two messages with the same key takes the place of the older one. */
export function collapse(context: SessionContext, event: EventOf<'injection_collapsed'>): Partial<SessionContext> {
  return {
    pending: inPlaceOf(context.pending, event),
    followups: inPlaceOf(context.followups, event),
    command_ids: withFate(context, event.command_id, REVOKED),
  };
}

function inPlaceOf<T extends { readonly command_id: string }>(
  queue: readonly T[],
  { command_id: older, into }: EventOf<'injection_collapsed'>,
): readonly T[] {
  const newer = queue.find(({ command_id }) => command_id === into);
  if (!newer) return queue;
  return queue.flatMap((one) => (one.command_id === older ? [newer] : one === newer ? [] : [one]));
}

/** A control has revoked a queued message or a live reminder, or replaced the text of a queued message. */
export function revokedOrReplaced(context: SessionContext, event: EventOf<'control_outcome'>): Partial<SessionContext> {
  const { target, command_id, body } = event;
  if (event.status === 'revoked') {
    const others = (one: { readonly command_id: string }) => one.command_id !== target;
    return {
      pending: context.pending.filter(others),
      followups: context.followups.filter(others),
      command_ids: withFate(context, target, REVOKED),
    };
  }
  if (event.status !== 'replaced' || body === undefined) return {};
  // Hooks have accepted the old text only.
  const replaced = <T extends { readonly command_id: string }>(one: T): T =>
    one.command_id === target ? { ...one, body, replaced_by: command_id, allowed: undefined } : one;
  return { pending: context.pending.map(replaced), followups: context.followups.map(replaced) };
}

/** Marks a blocked message in the memory of commands. */
export function markBlocked(
  context: SessionContext,
  { command_id }: EventOf<'injection_blocked'>,
): Partial<SessionContext> {
  return { command_ids: withFate(context, command_id, REVOKED) };
}

function withFate(context: SessionContext, commandId: string, fate: string): readonly string[] {
  const entry = injectionEntry(commandId);
  return context.command_ids.map((known) => (known === entry ? `${commandId}${fate}` : known));
}

/**
 * The fate of a message, as far as the session remembers it: queued (`waiting`), a reminder that prompts show (`live`),
 * `delivered`; or `revoked`, also if it was cleared, blocked or collapsed. Any other id is `unknown`.
 */
function injectionFate(
  context: SessionContext,
  commandId: string,
): 'waiting' | 'live' | 'delivered' | 'revoked' | 'unknown' {
  const isIt = (one: { readonly command_id: string }) => one.command_id === commandId;
  if (context.pending.some(isIt) || context.followups.some(isIt)) return 'waiting';
  if (context.reminders.some(isIt)) return 'live';
  const entry = injectionEntry(commandId);
  const known = context.command_ids.findLast((one) => one.startsWith(entry));
  if (known === undefined) return 'unknown';
  return known === entry ? 'delivered' : 'revoked';
}

/**
 * A message has arrived. If it preempts and needs no verdict, it preempts at once. A reminder of a hook is not a
 * command, so its id is not remembered.
 */
export function injectionReceived(context: SessionContext, event: Placed<QueueingEvent>): Partial<SessionContext> {
  return {
    ...queueInjection(context, event),
    ...('preempt' in event && event.preempt && !preemptsAfterVerdict(context, event)
      ? preemptOpenWork(context, event.command_id, event.actor)
      : {}),
    ...('hook' in event ? {} : noteCommand(context, event.command_id, injectionEntry(event.command_id))),
  };
}
