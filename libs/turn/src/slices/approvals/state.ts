/**
 * The remembered rules of a session, and those of its persona.
 */
import type { Actor, RememberedRule } from '@coxswain/protocol';

/** A rule that a person created in this session, or, for a copy, in the session that it copies. */
export interface KnownRule extends RememberedRule {
  /** Who revoked the rule, and when (ISO 8601). Only for a revoked rule. */
  readonly revoked?: { readonly actor?: Actor | undefined; readonly at: string } | undefined;
}

/** The members of the context for approvals. Parked calls are in the call table. */
export interface ApprovalsState {
  /** The session's own rules, also revoked ones, oldest first. */
  readonly remembered: readonly KnownRule[];
  /** Rules of the persona at the last provision: of the run, of a hand-off, or of changed settings. */
  readonly persona_rules: readonly RememberedRule[];
}

/** No rules. */
export const EMPTY_APPROVALS: ApprovalsState = { remembered: [], persona_rules: [] };
