/** How little the next prompt can have: what a budget must be able to cover before another answer is begun. */
import { passDue } from './compaction.ts';
import type { SessionContext } from './context.ts';
import { viewAtTurnEnd } from './view-account.ts';

/**
 * Input tokens that the next prompt has at least; 0 where that is not known. A transcript only grows, so they are those
 * of the last one: unless a compaction is due, hooks or the persona shape prompts, or a reminder is shown no longer.
 */
export function leastNextPrompt(context: SessionContext): number {
  const { count, pinned, hooks, reminders } = context;
  if (count.prompt_tokens === 0 || pinned?.shapes_prompts) return 0;
  if (hooks.some(({ point }) => point === 'transform_context')) return 0;
  if (reminders.some(({ due, ttl_left }) => due !== undefined || ttl_left === 1)) return 0;
  return passDue(atTurnEnd(context)) ? 0 : count.prompt_tokens;
}

// A compaction replaces whole turns, and it is considered when the open one is over.
function atTurnEnd(context: SessionContext): SessionContext {
  if (!context.turn_open) return context;
  const keepTurns = context.pinned?.compaction?.keep_turns ?? 0;
  return { ...context, overflows: 0, view: viewAtTurnEnd(context.view, keepTurns) };
}
