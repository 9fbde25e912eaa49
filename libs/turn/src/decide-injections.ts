/**
 * Injections at the door: steers, reminders and follow-ups are taken in, collapsed, revoked and replaced.
 *
 * I1  What waits under one dedupe key is one injection per kind: the newest, in the place of the oldest.
 * I2  What is delivered cannot be taken back, but a reminder that prompts still show can be cleared.
 */
import {
  BOUNDS,
  type CommandInput,
  type MessageSource,
  type Mode,
  type Propagate,
  type ReminderFields,
  type RoleHint,
  type SessionEvent,
} from '@coxswain/protocol';
import type { PendingFollowup, PendingInjection, SessionContext } from './context.ts';
import { type Decision, events } from './decision.ts';
import { injectionFate } from './evolve-injections.ts';
import { bodyBytes, pendingBytes, reminderBytes, textBytes } from './injection-bytes.ts';
import { controlOutcome, reject } from './rejection.ts';
import { supersededBy } from './reminders.ts';

/** Takes a steer, a reminder or a follow-up in, to wait for its seam. */
export function decideInjection(context: SessionContext, input: CommandInput, atMs: number): Decision {
  const { command_id, body, verb } = input;
  const dedupeKey = body.dedupe_key as string | undefined;
  const older = dedupeKey === undefined ? undefined : waitingUnder(context, verb, dedupeKey);
  if (!older && context.pending.length + context.followups.length >= BOUNDS.pendingInjectionsMax)
    return reject(
      input,
      'too_many_pending',
      `the session already has ${BOUNDS.pendingInjectionsMax} queued messages, which is the limit`,
    );
  const bytes = textBytes(body.body as string);
  const full = fullProblem(context, bytes, older);
  if (full !== null) return reject(input, 'pending_full', full);
  const superseded = supersededBy(context, { command_id, dedupe_key: dedupeKey });
  const takesNoRoom = older !== undefined || superseded !== undefined;
  if (verb === 'remind' && !takesNoRoom && remindersOf(context) >= BOUNDS.remindersLiveMax)
    return reject(
      input,
      'too_many_reminders',
      `the session already has ${BOUNDS.remindersLiveMax} queued or visible reminders, which is the limit`,
    );
  const freed = (older ? bodyBytes(older) : 0) + (superseded ? bodyBytes(superseded) : 0);
  if (verb === 'remind' && reminderBytes(context) - freed + bytes > BOUNDS.remindersLiveMaxBytes)
    return reject(
      input,
      'too_many_reminders',
      `this reminder has ${bytes} bytes; queued and visible reminders together may have at most ${BOUNDS.remindersLiveMaxBytes} bytes`,
    );
  const received = receivedEvent(input, new Date(atMs).toISOString());
  if (!older) return events(received);
  return events(received, {
    type: 'injection_collapsed',
    command_id: older.command_id,
    into: command_id,
    dedupe_key: dedupeKey as string,
  });
}

/**
 * Why the queues have no room for a text of so many bytes, or null.
 * @param replaced the entry whose place it takes.
 */
function fullProblem(
  context: SessionContext,
  bytes: number,
  replaced: PendingInjection | PendingFollowup | undefined,
): string | null {
  const waiting = pendingBytes(context) - (replaced ? bodyBytes(replaced) : 0);
  if (waiting + bytes <= BOUNDS.pendingInjectionsMaxBytes) return null;
  return `queued messages have ${waiting} bytes, and this one has ${bytes}; together they may have at most ${BOUNDS.pendingInjectionsMaxBytes} bytes`;
}

function receivedEvent(input: CommandInput, at: string): SessionEvent {
  const { body, verb } = input;
  const key = body.dedupe_key === undefined ? {} : { dedupe_key: body.dedupe_key as string };
  const head = { command_id: input.command_id, body: body.body as string };
  const tail = { ...(input.actor ? { actor: input.actor } : {}), at };
  // Only a message has these: no client's body may.
  const from = body.from === undefined ? {} : { from: body.from as unknown as MessageSource };
  const begins = body.begins_run === true ? { begins_run: true as const } : {};
  if (verb === 'followup') return { type: 'followup_received', ...head, ...key, ...from, ...begins, ...tail };
  const mode = { mode: body.mode as Mode, ...(body.preempt === true ? { preempt: true as const } : {}) };
  if (verb === 'steer') return { type: 'steering_received', ...head, ...mode, ...key, ...from, ...tail };
  return { type: 'reminder_injected', ...head, ...mode, ...reminderFields(body), ...key, ...tail };
}

function reminderFields(body: CommandInput['body']): ReminderFields {
  return {
    tags: (body.tags ?? []) as string[],
    ...(body.ttl_turns === undefined ? {} : { ttl_turns: body.ttl_turns as number }),
    preserve_on_compact: (body.preserve_on_compact ?? false) as boolean,
    propagate: (body.propagate ?? 'session') as Propagate,
    role_hint: (body.role_hint ?? 'system') as RoleHint,
  };
}

// A user message never stands in the place of a reminder, nor the other way round, so each kind has keys of its own.
function waitingUnder(
  context: SessionContext,
  verb: string,
  dedupeKey: string,
): PendingInjection | PendingFollowup | undefined {
  return verb === 'followup'
    ? context.followups.find((followup) => followup.dedupe_key === dedupeKey)
    : context.pending.find((injection) => injection.kind === verb && injection.dedupe_key === dedupeKey);
}

function remindersOf(context: SessionContext): number {
  return context.reminders.length + context.pending.filter(({ kind }) => kind === 'remind').length;
}

/** Takes an injection back that waits, or clears a reminder that is shown. */
export function decideRevoke(context: SessionContext, input: CommandInput): Decision {
  const target = input.body.command_id as string;
  const fate = injectionFate(context, target);
  if (fate !== 'waiting' && fate !== 'shown') return rejectFate(input, target, fate);
  const outcome = controlOutcome(context.session_id, input, 'revoked');
  return fate === 'shown'
    ? events(outcome, { type: 'reminder_expired', command_id: target, reason: 'cleared' })
    : events(outcome);
}

/** Gives an injection that waits another text; it keeps its place, its id and everything else. */
export function decideReplace(context: SessionContext, input: CommandInput): Decision {
  const target = input.body.command_id as string;
  const fate = injectionFate(context, target);
  if (fate !== 'waiting') return rejectFate(input, target, fate === 'shown' ? 'delivered' : fate);
  const body = input.body.body as string;
  const isTarget = ({ command_id }: { readonly command_id: string }) => command_id === target;
  const replaced = context.pending.find(isTarget) ?? context.followups.find(isTarget);
  const full = fullProblem(context, textBytes(body), replaced);
  if (full !== null) return reject(input, 'pending_full', full);
  return events({ ...controlOutcome(context.session_id, input, 'replaced'), body });
}

function rejectFate(input: CommandInput, target: string, fate: 'delivered' | 'revoked' | 'unknown'): Decision {
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
