/**
 * Remembered rules of a session.
 */
import type { Actor, RememberedRule } from '@coxswain/protocol';

/** A rule that this session remembers, or that was revoked. */
export interface KnownRule extends RememberedRule {
  readonly revoked?: { readonly actor?: Actor | undefined; readonly at: string } | undefined;
}

/** The members of the context for approvals. Parked calls are in the call table. */
export interface ApprovalsState {
  /** Rules created in this session, oldest first. */
  readonly remembered: readonly KnownRule[];
  /** Rules of the persona at the last provision: of the run, of a hand-off, or of changed settings. */
  readonly persona_rules: readonly RememberedRule[];
}

/** No rules. */
export const EMPTY_APPROVALS: ApprovalsState = { remembered: [], persona_rules: [] };
