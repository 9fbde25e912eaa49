/**
 * Queries of the queues: queued messages, awaited verdicts, and sizes in bytes.
 */
import type { SessionContext } from '../../core/context.ts';
import { isHooked } from '../hooks/consult.ts';
import type { PendingFollowup, PendingInjection } from './state.ts';

/** Whether hooks must check a message that is accepted now: hooks of the prompt check steers and follow-ups too. */
export function isGuarded(context: SessionContext): boolean {
  return isHooked(context, 'user_prompt_submit');
}

/** Whether hooks have not accepted a message so far. Reminders are not checked. */
export function awaitsVerdict(context: SessionContext, injection: PendingInjection | PendingFollowup): boolean {
  return !injection.allowed && !('kind' in injection && injection.kind === 'remind') && isGuarded(context);
}

// Steers and reminders.
const isSteering = (injection: PendingInjection) => injection.mode !== 'audit_only';

/** Whether a message is queued that a turn would deliver, with or without its verdict. */
export function steeringWaits(context: SessionContext): boolean {
  return context.pending.some(isSteering);
}

/** Whether a message is queued that a turn can deliver now. */
export function steeringIsDeliverable(context: SessionContext): boolean {
  return context.pending.some((injection) => isSteering(injection) && !awaitsVerdict(context, injection));
}

/** Whether a verdict on steering is still awaited. */
export function steeringAwaitsVerdict(context: SessionContext): boolean {
  return context.pending.some((injection) => isSteering(injection) && awaitsVerdict(context, injection));
}

/** Whether a message before or with the next follow-up waits for hooks. */
export function followupAwaitsVerdict(context: SessionContext): boolean {
  const next = context.pinned?.drain.followups === 'all' ? context.followups : context.followups.slice(0, 1);
  return steeringAwaitsVerdict(context) || next.some((followup) => awaitsVerdict(context, followup));
}

/**
 * The interrupt that wakes a suspended session. Each one wakes it once. Without this limit, a session whose step is
 * denied each time would be woken again and again before a seam could deliver the interrupt.
 */
export function waker(context: SessionContext): PendingInjection | undefined {
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

/** Bytes of all queued injections: steers, reminders and follow-ups. */
export function pendingBytes({ pending, followups }: Pick<SessionContext, 'pending' | 'followups'>): number {
  return sumOf(pending) + sumOf(followups);
}

/** Bytes of all reminders that are queued or shown. */
export function reminderBytes({ pending, reminders }: Pick<SessionContext, 'pending' | 'reminders'>): number {
  return sumOf(reminders) + sumOf(pending.filter(({ kind }) => kind === 'remind'));
}
