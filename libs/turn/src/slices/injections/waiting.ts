/** Queries of the queues: what waits, what awaits a verdict of hooks, and how many bytes it has. */
import type { SessionContext } from '../../core/context.ts';
import { isHooked } from '../hooks/registrations.ts';
import type { PendingFollowup, PendingInjection } from './state.ts';

/** Whether hooks must let a message in that is accepted now: a prompt's guard guards steers and follow-ups too. */
export function isGuarded(context: SessionContext): boolean {
  return isHooked(context, 'user_prompt_submit');
}

/** Whether hooks have yet to let this one in. Reminders are no prompts, and pass. */
export function awaitsVerdict(context: SessionContext, injection: PendingInjection | PendingFollowup): boolean {
  return !injection.allowed && !('kind' in injection && injection.kind === 'remind') && isGuarded(context);
}

const isSteering = (injection: PendingInjection) => injection.mode !== 'audit_only';

/** Whether a message waits that a turn would deliver, accepted by hooks or not. */
export function steeringWaits(context: SessionContext): boolean {
  return context.pending.some(isSteering);
}

/** Whether something waits that a turn would take up now. */
export function steeringIsLetIn(context: SessionContext): boolean {
  return context.pending.some((injection) => isSteering(injection) && !awaitsVerdict(context, injection));
}

/** Whether hooks have yet to say of some steering whether a turn takes it up. */
export function steeringAwaitsVerdict(context: SessionContext): boolean {
  return context.pending.some((injection) => isSteering(injection) && awaitsVerdict(context, injection));
}

/** Whether a message before or with the next follow-up waits for hooks. */
export function followupAwaitsVerdict(context: SessionContext): boolean {
  const next = context.pinned?.drain.followups === 'all' ? context.followups : context.followups.slice(0, 1);
  return steeringAwaitsVerdict(context) || next.some((followup) => awaitsVerdict(context, followup));
}

/**
 * The interrupt that wakes a session that is suspended. Each wakes it once: where it sleeps again before a seam could
 * deliver it, as its step is denied each time, it would be woken for ever.
 */
export function waker(context: SessionContext): PendingInjection | undefined {
  return context.pending.find(
    (injection) =>
      injection.mode === 'interrupt_immediate' && !injection.has_woken && !awaitsVerdict(context, injection),
  );
}

/** The next follow-up to take, or undefined. */
export function nextFollowup(context: SessionContext): PendingFollowup | undefined {
  return context.followups[0];
}

/** Whether an interrupt waits for a seam. */
export function interruptWaits(context: SessionContext): boolean {
  return context.pending.some(({ mode }) => mode === 'interrupt_immediate');
}

interface WithBody {
  readonly body: string;
}

const encoder = new TextEncoder();

// Entries of the context are never changed in place, so each is measured once and not with every arrival.
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
