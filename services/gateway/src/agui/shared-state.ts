import type { JsonPatchOperation } from '@ag-ui/core';
import { canonicalJson, type SessionStatus, topState } from '@coxswain/protocol';

/** The maximum number of entries in each list. */
const ENTRIES_MAX = 100;

/** The state that AG-UI clients see. It is read-only: of a state that a client sends, only `n` is read. */
export interface SharedState {
  readonly session_id: string;
  /** Number of the last record that the client has received. */
  readonly n: number;
  readonly state: string;
  readonly stop_reason: string | null;
  readonly persona: string | null;
  readonly model: string | null;
  readonly run: number;
  readonly turn: number;
  readonly approvals: SessionStatus['approvals'];
  /** Queued messages, in order. */
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

/**
 * Converts a status to the shared state.
 * @param n number of the last record that the client has received.
 */
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

/** The difference of two states as a JSON Patch (RFC 6902) that replaces each changed member. */
export function changesBetween(before: SharedState, after: SharedState): JsonPatchOperation[] {
  return (Object.keys(after) as (keyof SharedState)[])
    .filter((key) => canonicalJson(before[key] ?? null) !== canonicalJson(after[key] ?? null))
    .map((key) => ({ op: 'replace' as const, path: `/${key}`, value: after[key] }));
}
