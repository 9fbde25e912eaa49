/** The parent and the children of a session. */
import type { ParentLink, Usage } from '@coxswain/protocol';
import type { OpenEffect } from '../../core/journal-place.ts';

/** A child that has not reported its end. */
export interface OpenChild {
  readonly effect_id: string;
  readonly call_id: string;
  readonly session: string;
  readonly persona: string;
  readonly started_at_ms: number;
  /** Number of restarts of the call's child up to this one; 0 for the first child. */
  readonly restart: number;
  /** Its share of the run's budget, if the run has one. */
  readonly tokens?: number | undefined;
  readonly nano_usd?: number | undefined;
}

/** Usage of ended children. */
export interface SpentByChildren {
  readonly usage: Usage;
  /** Null if the cost of one of them is unknown. */
  readonly nano_usd: number | null;
}

/** No usage. */
export const NOTHING_SPENT: SpentByChildren = { usage: { input_tokens: 0, output_tokens: 0 }, nano_usd: 0 };

/** The members of the context for other sessions: the parent, the children, and messages. */
export interface ChildrenState {
  /** The parent. `detached`: the session is a copy of a child, and no parent waits for it. */
  readonly parent: (ParentLink & { readonly detached?: true | undefined }) | null;
  /** Children that have not reported their end, oldest first; also those of abandoned calls. */
  readonly children: readonly OpenChild[];
  /** Usage of all ended children, of all runs. */
  readonly spent_by_children: SpentByChildren;
  /** Length of the longest chain of messages between sessions that led to this run, or to this job of a daemon. */
  readonly hops: number;
  /** The open effect that reports the first run to the parent; null once the report is sent, and in all other runs. */
  readonly notice: OpenEffect | null;
}

/** No parent and no children. */
export const EMPTY_CHILDREN: ChildrenState = {
  parent: null,
  children: [],
  spent_by_children: NOTHING_SPENT,
  hops: 0,
  notice: null,
};
