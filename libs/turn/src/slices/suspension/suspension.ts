/**
 * The start of a requested suspension, what ends it, and the messages to the model after it. What requests it:
 * requests.ts. When the session enters it: the transitions to `suspended` (machine/chart.ts). Its timer: core/timers.ts.
 */

import {
  canonicalJson,
  type EventOf,
  type JsonObject,
  type Mode,
  type ReminderMessage,
  type SessionEvent,
  userText,
} from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { nextIndex, type PlacedEvent } from '../../core/journal-place.ts';
import type { PendingFollowup, PendingInjection } from '../injections/state.ts';
import { wakingInterrupt } from '../injections/waiting.ts';
import type { RequestedSuspension, Suspension, Waking } from './state.ts';

/**
 * The event that starts the requested suspension, or null without a request.
 * @param effectId the id of its timer, if it has a time limit.
 */
export function suspensionStart(context: SessionContext, effectId: string): EventOf<'suspended'> | null {
  const { suspend, at_ms } = context;
  if (!suspend) return null;
  const { command_id, call_id, reason, until_ms, for_ms, signal, on_timeout } = suspend;
  const untilMs = until_ms ?? (for_ms === undefined ? undefined : at_ms + for_ms);
  return {
    type: 'suspended',
    ...(command_id === undefined ? {} : { command_id }),
    ...(call_id === undefined ? {} : { call_id }),
    ...(reason === undefined ? {} : { reason }),
    ...(untilMs === undefined ? {} : { until_ms: untilMs, effect_id: effectId }),
    ...(signal === undefined ? {} : { signal }),
    ...(on_timeout === undefined ? {} : { on_timeout }),
  };
}

/** The outcome for the command that requested a suspension, if the run ends first; null without such a command. */
export function lapsedSuspension({ session_id, suspend }: SessionContext): EventOf<'control_outcome'> | null {
  if (suspend?.command_id === undefined) return null;
  const { command_id, actor } = suspend;
  return {
    type: 'control_outcome',
    control: 'suspend',
    command_id,
    status: 'lapsed',
    target: session_id,
    ...(actor ? { actor } : {}),
    reason: 'the run ended before the suspension took effect',
  };
}

/**
 * Marks an interrupt that arrives, or that hooks accept, between the request of a suspension and its start. If a seam
 * delivers the interrupt before the start, the suspension ends as soon as it starts.
 */
export function interruptMark(
  { suspend }: SessionContext,
  injection: { readonly mode: Mode } | PendingFollowup,
): { readonly interrupts?: string } {
  const interrupts = 'mode' in injection && injection.mode === 'interrupt_immediate';
  return suspend && interrupts ? { interrupts: requestOf(suspend) } : {};
}

/**
 * Notes the first delivered interrupt in the requested suspension. An interrupt that is still queued needs no note, because
 * {@link wakingInterrupt} finds it.
 */
export function noteInterruptOfRequest(context: SessionContext, ids: readonly string[]): Partial<SessionContext> {
  const { suspend, pending } = context;
  if (!suspend || suspend.interrupted_by !== undefined) return {};
  const interrupt = pending.find(
    ({ command_id, interrupts }) => interrupts === requestOf(suspend) && ids.includes(command_id),
  );
  return interrupt ? { suspend: { ...suspend, interrupted_by: interrupt.command_id } } : {};
}

/** The identity of a suspension: the command or the call of the tool `park` that requested it; empty if a step did. */
function idOf({ command_id, call_id }: RequestedSuspension): string {
  return command_id ?? call_id ?? '';
}

/**
 * The identity of a request in the mark of an interrupt. The request of a failed step has none, although it can keep the
 * command of an earlier request (`escalation`, steps/steps.ts): an interrupt that arrived before the step failed does not
 * end its suspension.
 */
function requestOf(request: RequestedSuspension): string {
  return request.step === undefined ? idOf(request) : '';
}

/** The members of the payload of pre_suspend hooks, in addition to `payloadHead` (hooks/consult.ts). */
export function suspensionPayload(suspend: SessionContext['suspend']): JsonObject {
  const { reason, until_ms, for_ms, signal, on_timeout, call_id } = suspend ?? {};
  return {
    ...(reason === undefined ? {} : { reason }),
    ...(until_ms === undefined ? {} : { until: timeText(until_ms) }),
    ...(for_ms === undefined ? {} : { for_ms }),
    ...(signal === undefined ? {} : { signal }),
    ...(on_timeout === undefined ? {} : { on_timeout }),
    ...(call_id === undefined ? {} : { call_id }),
  };
}

/**
 * The event that ends the suspension now, or null. The order: a resume command, an interrupt, the awaited signal, the
 * time limit. With `on_timeout: fail` the time limit ends the run.
 */
export function suspensionEnd(context: SessionContext): SessionEvent | null {
  const { suspension } = context;
  if (!suspension) return null;
  const head = { type: 'resumed', slept_ms: Math.max(0, context.at_ms - suspension.since_ms) } as const;
  if (suspension.resumed_by !== undefined) return { ...head, cause: 'command', command_id: suspension.resumed_by };
  const interrupt = suspension.interrupted_by ?? wakingInterrupt(context)?.command_id;
  if (interrupt !== undefined) return { ...head, cause: 'interrupt', command_id: interrupt };
  const signal = context.signals.find(({ name }) => name === suspension.signal);
  if (signal) {
    const { command_id, name, data } = signal;
    return { ...head, cause: 'signal', command_id, signal: { name, ...(data === undefined ? {} : { data }) } };
  }
  if (!suspension.expired) return null;
  if (suspension.on_timeout !== 'fail') return { ...head, cause: 'timeout' };
  const message = `the suspension expired: ${waitedFor(suspension)}`;
  return {
    type: 'run_failed',
    source: 'suspension',
    error: { code: 'suspension_expired', message },
    stop_reason: 'error',
  };
}

/** The messages to the model after a suspension. */
function wakingAfterSuspension(suspension: Suspension, event: EventOf<'resumed'>): Waking {
  const { input, on_timeout } = suspension;
  const injects = event.cause === 'timeout' && on_timeout === 'resume_with_input' && input !== undefined;
  return {
    id: idOf(suspension),
    seam: 'post_resume',
    messages: [sleepReminder(suspension, event), ...(injects ? [userText(input)] : [])],
    // An awaited signal or time is news for the model. After a resume command the run only continues. An interrupt takes a
    // turn by itself.
    takes_turn: event.cause === 'signal' || event.cause === 'timeout',
  };
}

/** The message to the model when a daemon wakes by its interval. */
export function wakingFromInterval(timerId: string, intervalMs: number): Waking {
  const text =
    `No input arrived for ${durationText(intervalMs)}, which is the wake interval of this session. ` +
    'Check whether there is work to do now. If there is none, say so briefly.';
  return { id: timerId, seam: 'daemon_idle_post', messages: [reminder(text)], takes_turn: true };
}

function sleepReminder(suspension: Suspension, event: EventOf<'resumed'>): ReminderMessage {
  const { since_ms, reason, call_id } = suspension;
  const began = call_id === undefined ? 'The session was suspended' : 'You parked this session';
  const inBrackets = reason === undefined ? '' : ` (${reason})`;
  const slept = `It slept for ${durationText(event.slept_ms)}, from ${timeText(since_ms)} to ${timeText(since_ms + event.slept_ms)}.`;
  return reminder(`${began}${inBrackets}. ${slept} ${wokenBy(suspension, event)}`);
}

function wokenBy(suspension: Suspension, event: EventOf<'resumed'>): string {
  switch (event.cause) {
    case 'command':
      return 'A resume command woke it.';
    case 'interrupt':
      return 'A message woke it.';
    case 'signal': {
      const { name, data } = event.signal ?? { name: '' };
      return `The signal "${name}" arrived${data === undefined ? '.' : ` with this data: ${canonicalJson(data)}`}`;
    }
    case 'timeout':
      return `${waitedFor(suspension)[0]?.toUpperCase()}${waitedFor(suspension).slice(1)}.`;
  }
}

function waitedFor({ signal, until_ms }: Suspension): string {
  const until = until_ms === undefined ? 'its end time' : timeText(until_ms);
  return signal === undefined
    ? `it waited until ${until}, and that time was reached`
    : `it waited for the signal "${signal}" until ${until}, and the signal did not arrive`;
}

function reminder(text: string): ReminderMessage {
  return { role: 'reminder', content: [{ type: 'text', text }] };
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

const UNITS = [
  [24 * 60 * 60 * 1_000, 'd'],
  [60 * 60 * 1_000, 'h'],
  [60 * 1_000, 'min'],
  [1_000, 's'],
] as const;

/** A duration in its two largest units, rounded: `30 d`, `3 h 2 min`, `1.8 s`, `450 ms`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 9_950) return `${Math.round(ms / 100) / 10} s`;
  // Rounded before the division, so that no unit becomes 60.
  const roundings = UNITS.map((_, index) => roundedTo(ms, UNITS[index + 1]?.[0] ?? 1_000));
  const parts: string[] = [];
  let rest = roundings.find((rounded, index) => rounded >= (UNITS[index]?.[0] ?? 0)) ?? 0;
  for (const [size, unit] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${unit}`);
  }
  return parts.join(' ');
}

function roundedTo(ms: number, size: number): number {
  return Math.round(ms / size) * size;
}

/** A suspension starts. */
export function suspended(context: SessionContext, event: EventOf<'suspended'> & PlacedEvent): Partial<SessionContext> {
  const { for_ms: _, ...requested } = context.suspend ?? {};
  const head = { ...requested, since_ms: event.at_ms };
  const { effect_id, until_ms } = event;
  if (effect_id === undefined) return { suspend: null, suspension: head, idle_timer: null };
  return {
    suspend: null,
    suspension: { ...head, until_ms, timer: { id: effect_id, epoch: context.epoch } },
    idle_timer: null,
    next_effect: nextIndex(context, event) + 1,
  };
}

/** A suspension has ended. */
export function resumed(context: SessionContext, event: EventOf<'resumed'>): Partial<SessionContext> {
  const { suspension, pending } = context;
  const woken = (one: PendingInjection): PendingInjection =>
    one.command_id === event.command_id ? { ...one, has_woken: true } : one;
  return {
    suspension: null,
    ...(event.cause === 'interrupt' ? { pending: pending.map(woken) } : {}),
    ...(suspension ? { waking: wakingAfterSuspension(suspension, event) } : {}),
    ...(event.cause === 'signal'
      ? { signals: context.signals.filter(({ command_id }) => command_id !== event.command_id) }
      : {}),
  };
}

/** A direct message is in the transcript. If it is about an ended suspension or idle interval, it leaves `waking`. */
export function wakingMessageDelivered(
  context: SessionContext,
  event: EventOf<'message_injected'>,
): Partial<SessionContext> {
  const { waking } = context;
  return waking?.seam === event.seam ? { waking: { ...waking, messages: waking.messages.slice(1) } } : {};
}

/** The event of the next message of `waking`, after a suspension or idle interval; or null. */
export function nextWakingMessage({ waking, turn }: SessionContext): SessionEvent | null {
  const message = waking?.messages[0];
  if (!waking || !message) return null;
  return { type: 'message_injected', command_id: waking.id, origin: 'direct', seam: waking.seam, turn, message };
}
