/**
 * Stop conditions of a run: which one is true after a turn, and when predicates in code must be called. A true
 * condition ends the run with the turn, unless something in the turn continues the run: {@link isStopped}, and OUTPUT-3
 * (output.ts). The host calls the predicates: `checkStop` (check-stop.ts in libs/session).
 */

import {
  type AssistantMessage,
  globMatches,
  type SessionEvent,
  type StopOutcome,
  textOf,
  textStops,
} from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { type Decision, events, late } from '../../core/decision.ts';
import type { AbortOrder, Effect } from '../../core/effect.ts';
import { nextEffectId, nextIndex, type Placed } from '../../core/journal-place.ts';

/** The event for the first text condition that is true of an answer; none if no condition is. */
export function textStop(context: SessionContext, message: AssistantMessage): SessionEvent[] {
  const conditions = context.pinned?.stop_when ?? [];
  if (conditions.length === 0) return [];
  const text = textOf(message);
  const condition = conditions.find((candidate) => 'text' in candidate && textStops(candidate.text, text));
  return condition ? [{ type: 'stop_condition_held', turn: context.turn, condition }] : [];
}

/**
 * The event for the first condition on tools that is true after a batch, or null. Only calls that have started count.
 * Also null if a condition is already true, and in a turn with a successful hand-off or with skipped calls.
 */
export function toolStop(context: SessionContext): SessionEvent | null {
  // After a hand-off the old persona's conditions no longer apply, and the new persona has not started.
  if (context.relay.from !== null) return null;
  const conditions = context.pinned?.stop_when ?? [];
  if (conditions.length === 0 || context.stop_held || context.dispatch_skipped) return null;
  const condition = conditions.find(
    (candidate) =>
      'tool' in candidate &&
      context.calls.some((row) => row.started_at_ms !== undefined && globMatches(candidate.tool, row.tool)),
  );
  return condition ? { type: 'stop_condition_held', turn: context.turn, condition } : null;
}

/**
 * The event that calls the predicates, at most once for each turn; null without predicates. Also null if a condition is
 * already true, or if in this turn the last seam has delivered a message, a hand-off has succeeded, or an interrupt has
 * skipped calls or cut the answer short.
 */
export function predicatesAsked(context: SessionContext): SessionEvent | null {
  const { stop_held, stop_checked, dispatch_skipped, cut_short, delivered_at_end, relay } = context;
  if (relay.from !== null || stop_held || stop_checked || dispatch_skipped || cut_short || delivered_at_end > 0)
    return null;
  const predicates = (context.pinned?.stop_when ?? []).flatMap((condition) =>
    'predicate' in condition ? [condition.predicate] : [],
  );
  if (predicates.length === 0) return null;
  return { type: 'stop_predicates_asked', turn: context.turn, effect_id: nextEffectId(context), predicates };
}

/** Decides the answers of predicates. The first that holds is the true stop condition, unless the run is aborting. */
export function decideStop(context: SessionContext, outcome: StopOutcome): Decision {
  if (context.stop_check?.id !== outcome.effect_id) return late(outcome.effect_id);
  const { effect_id, answers } = outcome;
  const answered: SessionEvent = { type: 'stop_predicates_answered', turn: context.turn, effect_id, answers };
  const held = answers.find(({ holds }) => holds);
  if (!held || context.aborting) return events(answered);
  return events(answered, {
    type: 'stop_condition_held',
    turn: context.turn,
    condition: { predicate: held.predicate },
  });
}

/**
 * Whether the run ends by a condition: one is true, the last seam of the turn delivered no message, and no interrupt skipped
 * calls or cut the answer short.
 */
export function isStopped(context: SessionContext): boolean {
  return context.stop_held && context.delivered_at_end === 0 && !context.dispatch_skipped && !context.cut_short;
}

/** The predicates are to be called about the open turn. */
export function stopCheckOpened(
  context: SessionContext,
  event: Placed<'stop_predicates_asked'>,
): Partial<SessionContext> {
  return {
    stop_check: { id: event.effect_id, epoch: context.epoch, predicates: event.predicates },
    next_effect: nextIndex(context, event) + 1,
  };
}

/** The effect of the open call of predicates. */
export function stopCheckEffects({ stop_check }: SessionContext, abort: AbortOrder | null): readonly Effect[] {
  return stop_check ? [{ kind: 'check_stop', ...stop_check, abort }] : [];
}
