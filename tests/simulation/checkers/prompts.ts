/** The prompts that models were really sent, each at the place in the journal at which it was asked for. */
import type { History } from '../history.ts';
import { eventsOf, type Journal } from './check.ts';

/** One prompt. */
export interface Prompt {
  readonly effectId: string;
  /** The index of the event behind which it was asked for, among all events of the journal. */
  readonly at: number;
  /** What users and reminders say in it, where that is short. */
  readonly said: readonly string[];
}

/** The prompts of a session, restarted ones included, in the order in which they were sent. */
export function promptsOf(journal: Journal, history: History): Prompt[] {
  // A model is asked behind this seam, or behind the hooks that shape what it is shown; once in a record at most.
  const askedAt = new Map<string, number>();
  for (const [index, { n, event }] of eventsOf(journal).entries()) {
    const asks =
      (event.type === 'loop_checkpoint' && event.kind === 'post_compact') ||
      (event.type === 'consult_ended' && event.point === 'transform_context');
    if (asks) askedAt.set(String(n), index);
  }
  return history.of('asked').flatMap(({ session, effectId, said }) => {
    const at = askedAt.get(effectId.split('-')[0] as string);
    return session === journal.session && at !== undefined ? [{ effectId, at, said }] : [];
  });
}
