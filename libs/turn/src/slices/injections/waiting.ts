/**
 * Queries of the queues: queued messages, awaited verdicts, and sizes in bytes. What a seam delivers: `deliverable`
 * (seam-passes.ts).
 */
import type { InjectionVerb, Mode } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { isHooked } from '../hooks/consult.ts';
import { CHANNELS, channelOf } from './channels.ts';
import type { PendingFollowup, PendingInjection } from './state.ts';

/** Whether `user_prompt_submit` hooks must check messages of this channel now. */
export function needsHookVerdict(context: SessionContext, verb: InjectionVerb): boolean {
  return CHANNELS[verb].checkedByHooks && isHooked(context, 'user_prompt_submit');
}

/** Whether a message still needs the verdict of hooks. */
export function awaitsVerdict(context: SessionContext, message: PendingInjection | PendingFollowup): boolean {
  return !message.allowed && needsHookVerdict(context, channelOf(message));
}

/**
 * Whether the mode of a queued message lets it continue a run or wake a daemon. `audit_only` does not: such a message
 * is delivered after the last turn. Further conditions: `hasQueuedWork` (continuation.ts), `wakes`
 * (machine/guards.ts).
 */
export function messageContinuesRun({ mode }: { readonly mode: Mode }): boolean {
  return mode !== 'audit_only';
}

/** Whether a steer or a reminder is queued that continues the run, with or without its verdict. */
export function pendingContinuesRun(context: SessionContext): boolean {
  return context.pending.some(messageContinuesRun);
}

/** Whether a steer or a reminder is queued that a turn can deliver now. */
export function pendingIsDeliverable(context: SessionContext): boolean {
  return context.pending.some((injection) => messageContinuesRun(injection) && !awaitsVerdict(context, injection));
}

/** Whether a queued steer that continues the run awaits its verdict. No reminder awaits one. */
export function pendingAwaitsVerdict(context: SessionContext): boolean {
  return context.pending.some((injection) => messageContinuesRun(injection) && awaitsVerdict(context, injection));
}

/**
 * Whether follow-ups must wait, because one of these awaits its verdict: a queued steer that continues the run, the next
 * follow-up, or, with the drain policy `all`, any follow-up.
 */
export function followupsMustWait(context: SessionContext): boolean {
  const next = context.pinned?.drain.followups === 'all' ? context.followups : context.followups.slice(0, 1);
  return pendingAwaitsVerdict(context) || next.some((followup) => awaitsVerdict(context, followup));
}

/**
 * The queued interrupt that wakes a suspended session, or undefined. An interrupt that awaits its verdict does not wake
 * it. Each interrupt wakes it once: otherwise a session that is suspended because PreStep hooks deny its step would be
 * woken again and again, before a seam delivers the interrupt.
 */
export function wakingInterrupt(context: SessionContext): PendingInjection | undefined {
  return context.pending.find(
    (injection) =>
      injection.mode === 'interrupt_immediate' && !injection.has_woken && !awaitsVerdict(context, injection),
  );
}

/** The next follow-up to deliver, or undefined. */
export function nextFollowup(context: SessionContext): PendingFollowup | undefined {
  return context.followups[0];
}

/** Whether an interrupt is queued. */
export function interruptWaits(context: SessionContext): boolean {
  return context.pending.some(({ mode }) => mode === 'interrupt_immediate');
}

interface WithBody {
  readonly body: string;
}

const encoder = new TextEncoder();

// Entries of the context are never changed in place, so each is measured once.
const measured = new WeakMap<WithBody, number>();

/** The length of a text in UTF-8, bytes. */
export function textBytes(text: string): number {
  return encoder.encode(text).length;
}

/** The length of one entry's text in UTF-8, bytes. */
export function bodyBytes(entry: WithBody): number {
  const known = measured.get(entry);
  if (known !== undefined) return known;
  const bytes = textBytes(entry.body);
  measured.set(entry, bytes);
  return bytes;
}

const sumOf = (entries: readonly WithBody[]) => entries.reduce((sum, entry) => sum + bodyBytes(entry), 0);

/** Bytes of all queued messages: steers, reminders and follow-ups. */
export function queuedBytes({ pending, followups }: Pick<SessionContext, 'pending' | 'followups'>): number {
  return sumOf(pending) + sumOf(followups);
}

/** Bytes of all reminders that are queued or live. */
export function reminderBytes({ pending, reminders }: Pick<SessionContext, 'pending' | 'reminders'>): number {
  return sumOf(reminders) + sumOf(pending.filter(({ kind }) => kind === 'remind'));
}
