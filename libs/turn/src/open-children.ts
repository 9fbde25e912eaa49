/**
 * Open children: what a session remembers of the sessions that it has started, until each has said how it ended.
 *
 * C1  A child is open from `child_started` to `child_ended`, or until it is known that nothing was started.
 * C2  What an open child may use is held back: nobody else is given it. What it has used counts when it has ended.
 */
import { addUsage, type EventOf, type Usage } from '@coxswain/protocol';
import type { BudgetCount } from './budgets.ts';
import { setCall } from './call-rows.ts';
import type { SessionContext } from './context.ts';
import { nextIndex } from './effect-index.ts';
import type { PlacedEvent } from './evolve.ts';

/** A child that has not said how it ended. */
export interface OpenChild {
  readonly effect_id: string;
  readonly call_id: string;
  readonly session: string;
  readonly persona: string;
  readonly started_at_ms: number;
  /** How often the work of its call was begun again before. */
  readonly restart: number;
  /** What it may use of the run's budget, where that has one. */
  readonly tokens?: number | undefined;
  readonly nano_usd?: number | undefined;
}

/** What children have used. */
export interface SpentByChildren {
  readonly usage: Usage;
  /** Null where a price was not known. */
  readonly nano_usd: number | null;
}

/** Nothing. */
export const NOTHING_SPENT: SpentByChildren = { usage: { input_tokens: 0, output_tokens: 0 }, nano_usd: 0 };

type Change = Partial<SessionContext>;

/** A child begins. In a call's first child the effect is the call's own; a restart has one of its own. */
export function childStarted(context: SessionContext, event: EventOf<'child_started'> & PlacedEvent): Change {
  const { call_id, effect_id, session, persona, restart = 0, budget } = event;
  const child: OpenChild = {
    effect_id,
    call_id,
    session,
    persona,
    started_at_ms: event.at_ms,
    restart,
    ...(budget?.tokens === undefined ? {} : { tokens: budget.tokens }),
    ...(budget?.nano_usd === undefined ? {} : { nano_usd: budget.nano_usd }),
  };
  const children = [...context.children, child];
  if (restart === 0) return { children };
  const again = { effect_id, epoch: context.epoch };
  return { children, ...setCall(context, call_id, again), next_effect: nextIndex(context, event) + 1 };
}

/** A child has reported: it is open no more, and what it has used counts. */
export function childEnded(context: SessionContext, event: EventOf<'child_ended'>): Change {
  const { effect_id, usage, nano_usd, call_id } = event;
  const { spent_by_children: before, count } = context;
  const sum = before.nano_usd === null || nano_usd === null ? null : before.nano_usd + nano_usd;
  const ended = context.children.find((child) => child.effect_id === effect_id);
  return {
    children: context.children.filter((child) => child !== ended),
    spent_by_children: { usage: addUsage(before.usage, usage), nano_usd: sum },
    count: counted(count, usage, nano_usd),
    // The next child of the call gets an effect of its own.
    ...(event.restarts
      ? setCall(context, call_id, { effect_id: undefined, accepted: undefined, restarts: (ended?.restart ?? 0) + 1 })
      : {}),
  };
}

/** A call has ended: what was never stored for it has started nothing. */
export function childAfterCall(context: SessionContext, callId: string): Change {
  if (context.children.length === 0) return {};
  const row = context.calls.find((candidate) => candidate.call_id === callId);
  if (row?.status !== 'running' || row.accepted !== undefined) return {};
  return { children: context.children.filter(({ effect_id }) => effect_id !== row.effect_id) };
}

/** What has been used, with what a child has. */
export function counted(count: BudgetCount, usage: Usage, nanoUsd: number | null): BudgetCount {
  return {
    ...count,
    tokens: count.tokens + usage.input_tokens + usage.output_tokens,
    nano_usd: count.nano_usd + (nanoUsd ?? 0),
  };
}

/** What all open children may still use. */
export function heldBack(context: SessionContext): { readonly tokens: number; readonly nano_usd: number } {
  let tokens = 0;
  let nano_usd = 0;
  for (const child of context.children) {
    tokens += child.tokens ?? 0;
    nano_usd += child.nano_usd ?? 0;
  }
  return { tokens, nano_usd };
}
