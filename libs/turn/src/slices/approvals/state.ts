/** Rules that people had a session remember. */
import type { Actor, RememberedRule } from '@coxswain/protocol';

/** A rule that people have had this session remember, or have revoked again. */
export interface KnownRule extends RememberedRule {
  readonly revoked?: { readonly actor?: Actor | undefined; readonly at: string } | undefined;
}

/** The members of the context that belong to approvals. Parked calls are in the call table. */
export interface ApprovalsState {
  /** Rules that were remembered in this session, oldest first. */
  readonly remembered: readonly KnownRule[];
  /** Rules that the persona had when the run began. */
  readonly persona_rules: readonly RememberedRule[];
}

/** No rules. */
export const EMPTY_APPROVALS: ApprovalsState = { remembered: [], persona_rules: [] };
