/** UTF-8 bytes of the texts of injections and reminders: what bounds a session's queues besides their count. Pure. */
import type { SessionContext } from './context.ts';

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
