/** The parent and the open children of a session. */
import type { ParentLink, Usage } from '@coxswain/protocol';
import type { OpenEffect } from '../../core/place.ts';

/** A child that has not said how it ended. */
export interface OpenChild {
  readonly effect_id: string;
  readonly call_id: string;
  readonly session: string;
  readonly persona: string;
  readonly started_at_ms: number;
  /** How often the child of this call was restarted before. */
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

/** The members of the context that belong to other sessions: the parent, the children, and messages from any. */
export interface ChildrenState {
  /** The parent. `detached`: the session is a fork of a child, and no parent waits for it. */
  readonly parent: (ParentLink & { readonly detached?: true | undefined }) | null;
  /** Children that have not said how they ended, oldest first; also those of calls that were given up. */
  readonly children: readonly OpenChild[];
  /** What children that have ended have used, of all runs. */
  readonly spent_by_children: SpentByChildren;
  /** Messages between sessions that have led, one after another, to what the run does. */
  readonly hops: number;
  /** The parent is to be told how the first run has ended. */
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
