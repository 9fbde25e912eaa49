/**
 * Delegation: which delegations may start, which budget and reminders a child gets, and when a child starts. The host
 * sends the start command: `startChild` (crew-effects.ts in libs/session).
 *
 * CHILD-3  A delegation beyond a limit ends its call with an error result and a code; the run continues.
 * CHILD-4  The rest of a run's tokens and money, without the shares of open children, is divided equally among the
 *     delegations of the batch that have not started and the run itself. A child gets such a share, or less if its call
 *     has lower limits.
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
import { sessionToolOf } from '../calls/table.ts';
import { inheritedReminders } from '../reminders/reminders.ts';

/** Whether a call delegates work to a child session. */
function isDelegation(context: SessionContext, row: CallRow): boolean {
  return sessionToolOf(context, row) === 'delegate';
}

/** Why a delegation cannot start although it is allowed, or null. */
export function delegationRefusal(
  context: SessionContext,
  row: CallRow,
): { readonly code: string; readonly text: string } | null {
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

/**
 * The child's share of the run's budget (CHILD-4): a member for each of tokens and money that the run limits. Null if a
 * member would be less than one token, or less than {@link LEAST_NANO_USD}.
 */
export function shareOf(
  context: SessionContext,
  row: CallRow,
): { readonly tokens?: number; readonly nano_usd?: number } | null {
  const { limits: asked = {} } = (row.args ?? {}) as Partial<DelegateArgs>;
  const reserved = reservedBudget(context);
  const parts = unstartedDelegations(context, row) + 1;
  const part = (budget: Budget, reservedPart: number, most: number | undefined) => {
    const left = leftOf(context, budget);
    return left === null
      ? undefined
      : Math.min(Math.floor((left - reservedPart) / parts), most ?? Number.POSITIVE_INFINITY);
  };
  const tokens = part('tokens', reserved.tokens, asked.tokens);
  const usd = asked.usd === undefined ? undefined : nanoUsdOf(asked.usd);
  const nano_usd = part('usd', reserved.nano_usd, usd);
  if ((tokens ?? 1) < 1 || (nano_usd ?? LEAST_NANO_USD) < LEAST_NANO_USD) return null;
  return { ...(tokens === undefined ? {} : { tokens }), ...(nano_usd === undefined ? {} : { nano_usd }) };
}

/** The smallest valid `limits.usd`, a millionth of a dollar. */
const LEAST_NANO_USD = 1_000;

/** The number of delegations of the batch that have not started, with this one. */
function unstartedDelegations(context: SessionContext, { call_id }: CallRow): number {
  const others = context.calls.filter(
    (row) =>
      row.call_id !== call_id &&
      (row.status === 'proposed' || row.status === 'parked' || row.status === 'allowed') &&
      !row.problem &&
      isDelegation(context, row),
  );
  return others.length + 1;
}

/**
 * The start of the child of the first running delegation that has none, or null.
 * @param nextEffect the id of the record's next effect. A delegation that restarts its child after a failure
 *   has no effect id, and its new start gets this one.
 */
export function nextChild(context: SessionContext, nextEffect: string): EventOf<'child_started'> | null {
  const row = context.calls.find(
    (candidate) =>
      candidate.status === 'running' &&
      candidate.accepted === undefined &&
      isDelegation(context, candidate) &&
      !context.children.some(({ effect_id }) => effect_id === candidate.effect_id),
  );
  if (!row) return null;
  const effect_id = row.effect_id ?? nextEffect;
  const { persona } = row.args as unknown as DelegateArgs;
  const share = shareOf(context, row) ?? {};
  const leftOut = remindersForChild(context).leftOut;
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

/**
 * The reminders that a child inherits, oldest first, and the number of those left out, because the bound in bytes is
 * reached.
 */
export function remindersForChild(context: SessionContext): {
  readonly reminders: readonly InheritedReminder[];
  readonly leftOut: number;
} {
  const all = inheritedReminders(context).map(({ type: _, ...reminder }) => reminder);
  let bytes = 0;
  // A UTF-16 code unit of the JSON text takes at most three bytes in UTF-8.
  const fits = all.filter((reminder) => {
    const size = JSON.stringify(reminder).length * 3;
    if (bytes + size > BOUNDS.inheritedRemindersMaxBytes) return false;
    bytes += size;
    return true;
  });
  return { reminders: fits, leftOut: all.length - fits.length };
}

/** The sum of the shares of all open children (CHILD-2, children.ts). */
function reservedBudget(context: SessionContext): { readonly tokens: number; readonly nano_usd: number } {
  let tokens = 0;
  let nano_usd = 0;
  for (const child of context.children) {
    tokens += child.tokens ?? 0;
    nano_usd += child.nano_usd ?? 0;
  }
  return { tokens, nano_usd };
}
