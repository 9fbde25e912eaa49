import type { JsonPatchOperation } from '@ag-ui/core';
import { canonicalJson, type SessionStatus, topState } from '@coxswain/protocol';

/** Entries of each list. */
const ENTRIES_MAX = 100;

/** The state that AG-UI clients see. It is read-only: state that a client sends is ignored. */
export interface SharedState {
  readonly session_id: string;
  /** The record up to which the client has been told. */
  readonly n: number;
  readonly state: string;
  readonly stop_reason: string | null;
  readonly persona: string | null;
  readonly model: string | null;
  readonly run: number;
  readonly turn: number;
  readonly approvals: SessionStatus['approvals'];
  /** What was said and is not delivered yet, in order. */
  readonly pending: readonly {
    readonly command_id: string;
    readonly kind: string;
    readonly mode: string | null;
    readonly body: string;
  }[];
  readonly suspended: SessionStatus['suspended'];
  readonly usage: SessionStatus['usage'];
  readonly cost_usd: number | null;
}

/** The state by what a host says, as of the record that the client has been told of. */
export function sharedState(status: SessionStatus, n: number): SharedState {
  const { session_id, stop_reason, persona, model, run, turn, suspended, usage, cost_usd } = status;
  return {
    ...{ session_id, n, state: topState(status.state), stop_reason, persona, model, run, turn },
    approvals: status.approvals.slice(0, ENTRIES_MAX),
    pending: status.pending
      .slice(0, ENTRIES_MAX)
      .map(({ command_id, kind, mode, body }) => ({ command_id, kind, mode: mode ?? null, body })),
    ...{ suspended, usage, cost_usd },
  };
}

/** What makes the one of the other: members that differ, each replaced whole (RFC 6902). */
export function changesBetween(before: SharedState, after: SharedState): JsonPatchOperation[] {
  return (Object.keys(after) as (keyof SharedState)[])
    .filter((key) => canonicalJson(before[key] ?? null) !== canonicalJson(after[key] ?? null))
    .map((key) => ({ op: 'replace' as const, path: `/${key}`, value: after[key] }));
}
