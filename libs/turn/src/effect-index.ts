/** The numbering of effects within a record (E2). */
import type { SessionContext } from './context.ts';

/** The index that the next effect asked for in an event's record gets (E2). */
export function nextIndex(context: SessionContext, event: { readonly n: number }): number {
  return event.n === context.n ? context.next_effect : 0;
}
