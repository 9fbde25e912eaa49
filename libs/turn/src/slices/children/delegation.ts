/**
 * Delegation: the calls that a session carries out itself. Which may begin, what a child begins with, and when a child is
 * started for a call.
 *
 * C3  What would pass a limit ends its call with an error result and a code; the run goes on.
 * C4  A run's budget is shared out in equal parts among the delegations of the batch that are still to begin and the run
 *     itself. Shares of open children are held back, so that a tree never has more than its root.
 */

import {
  BOUNDS,
  type Budget,
  childIdOf,
  type DelegateArgs,
  type EventOf,
  type InheritedReminder,
  nanoUsdOf,
} from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { leftOf } from '../budgets/budgets.ts';
import type { CallRow } from '../calls/state.ts';
import { handoffRefusal } from '../handoff/handoff.ts';
import { inheritedReminders } from '../reminders/reminders.ts';

/** The tools whose calls a session carries out itself. */
export type SessionTool = 'delegate' | 'handoff' | 'send_message';

/** Which of them a call is of, or null. */
export function sessionToolOf(context: SessionContext, { tool }: Pick<CallRow, 'tool'>): SessionTool | null {
  if (context.tools[tool]?.by_session !== true) return null;
  return tool === 'delegate' || tool === 'handoff' || tool === 'send_message' ? tool : null;
}

/** Why a call that rules and people let start cannot, or null. */
export function crewRefusal(
  context: SessionContext,
  row: CallRow,
): { readonly code: string; readonly text: string } | null {
  const tool = sessionToolOf(context, row);
  if (tool === null) return null;
  if (tool === 'handoff') return handoffRefusal(context, row);
  if (tool === 'send_message') {
    if (context.hops < BOUNDS.hopsMax) return null;
    const text = `The message was not sent: its chain of messages between sessions already has ${BOUNDS.hopsMax} hops, which is the limit.`;
    return { code: 'too_many_hops', text };
  }
  return delegationRefusal(context, row);
}

function delegationRefusal(context: SessionContext, row: CallRow) {
  const { children, depth } = context.pinned?.delegation ?? { children: 0, depth: 0 };
  if (depth < 1) {
    const text = 'No session was started: limits.depth allows no delegation from this session.';
    return { code: 'too_deep', text };
  }
  if (context.children.length >= children) {
    const text = `No session was started: the limit of open child sessions, ${children}, is reached.`;
    return { code: 'too_many_children', text };
  }
  if (shareOf(context, row) === null) {
    const text = 'No session was started: too little of the budget is left after the shares of open child sessions.';
    return { code: 'budget_not_left', text };
  }
  return null;
}

/** What a child of a call may use of the run's budget; null where that is nothing. Empty where the run has none. */
export function shareOf(
  context: SessionContext,
  row: CallRow,
): { readonly tokens?: number; readonly nano_usd?: number } | null {
  const { limits: asked = {} } = (row.args ?? {}) as Partial<DelegateArgs>;
  const held = heldBack(context);
  const parts = waiting(context, row) + 1;
  const part = (budget: Budget, held: number, most: number | undefined) => {
    const left = leftOf(context, budget);
    return left === null ? undefined : Math.min(Math.floor((left - held) / parts), most ?? Number.POSITIVE_INFINITY);
  };
  const tokens = part('tokens', held.tokens, asked.tokens);
  const usd = asked.usd === undefined ? undefined : nanoUsdOf(asked.usd);
  const nano_usd = part('usd', held.nano_usd, usd);
  if ((tokens ?? 1) < 1 || (nano_usd ?? LEAST_NANO_USD) < LEAST_NANO_USD) return null;
  return { ...(tokens === undefined ? {} : { tokens }), ...(nano_usd === undefined ? {} : { nano_usd }) };
}

/** What `limits.usd` can say at least: a millionth. */
const LEAST_NANO_USD = 1_000;

/** Delegations of the batch that are still to begin, this one included. */
function waiting(context: SessionContext, { call_id }: CallRow): number {
  const others = context.calls.filter(
    (row) =>
      row.call_id !== call_id &&
      (row.status === 'proposed' || row.status === 'parked' || row.status === 'allowed') &&
      !row.problem &&
      sessionToolOf(context, row) === 'delegate',
  );
  return others.length + 1;
}

/**
 * The child that a running call is to have and has not, or null.
 * @param nextEffect the id that the next effect asked for in this record gets: a restart has one of its own.
 */
export function childOwed(context: SessionContext, nextEffect: string): EventOf<'child_started'> | null {
  if (context.tools.delegate?.by_session !== true) return null;
  const row = context.calls.find(
    (candidate) =>
      candidate.status === 'running' &&
      candidate.accepted === undefined &&
      candidate.tool === 'delegate' &&
      !context.children.some(({ effect_id }) => effect_id === candidate.effect_id),
  );
  if (!row) return null;
  const effect_id = row.effect_id ?? nextEffect;
  const { persona } = row.args as unknown as DelegateArgs;
  const share = shareOf(context, row) ?? {};
  const leftOut = handedOn(context).leftOut;
  return {
    type: 'child_started',
    call_id: row.call_id,
    effect_id,
    session: childIdOf(context.session_id, effect_id),
    persona,
    depth: (context.parent?.depth ?? 0) + 1,
    ...(row.restarts === undefined ? {} : { restart: row.restarts }),
    ...(Object.keys(share).length > 0 ? { budget: share } : {}),
    ...(leftOut > 0 ? { reminders_left_out: leftOut } : {}),
  };
}

/** The reminders that a child begins with, oldest first, and how many found no room. */
export function handedOn(context: SessionContext): {
  readonly reminders: readonly InheritedReminder[];
  readonly leftOut: number;
} {
  const all = inheritedReminders(context, 1).map(({ type: _, ...reminder }) => reminder);
  let bytes = 0;
  // A reminder's own text can be six bytes for each of its units, escaped.
  const fits = all.filter((reminder) => {
    const size = JSON.stringify(reminder).length * 3;
    if (bytes + size > BOUNDS.inheritedRemindersMaxBytes) return false;
    bytes += size;
    return true;
  });
  return { reminders: fits, leftOut: all.length - fits.length };
}

/** What all open children may still use. */
function heldBack(context: SessionContext): { readonly tokens: number; readonly nano_usd: number } {
  let tokens = 0;
  let nano_usd = 0;
  for (const child of context.children) {
    tokens += child.tokens ?? 0;
    nano_usd += child.nano_usd ?? 0;
  }
  return { tokens, nano_usd };
}
