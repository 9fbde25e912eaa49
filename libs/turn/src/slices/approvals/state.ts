/**
 * The remembered rules of a session, and those of its persona.
 */
import type { Actor, RememberedRule } from '@coxswain/protocol';

/** A rule that a person created in this session. `revoked` is set once it is revoked. */
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
