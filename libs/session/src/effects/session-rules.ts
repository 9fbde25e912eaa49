/** The rules of the host for a session: where they come from, and the root and permissions that they impose. */
import {
  type Ceiling,
  commandCeiling,
  type Failure,
  type HostRules,
  isBelow,
  OPEN_RULES,
  type ParentLink,
  type StartSettings,
  type TenantId,
} from '@coxswain/protocol';

/** Returns a tenant's rules. `restricted`: for a restricted sender and its sessions; see `rulesFor` (libs/protocol). */
export type RulesFor = (tenant: TenantId, restricted: boolean) => HostRules;

/** The port of the host's policy. */
export interface PolicyPorts {
  /** The rules of the host's policy. Without it {@link OPEN_RULES} apply to every command and session. */
  readonly rulesFor?: RulesFor | undefined;
}

/** The host's rules for a session. They are checked at each use of what its start names, such as a model or a root. */
export function rulesOfSession(
  { rulesFor }: PolicyPorts,
  tenant: TenantId,
  settings: Pick<StartSettings, 'restricted'> | null,
): HostRules {
  return rulesFor?.(tenant, settings?.restricted === true) ?? OPEN_RULES;
}

/** The failure of a session that replaces built-in tools although the rules of the host forbid it; otherwise null. */
export function standInsProblem(rules: HostRules, settings: Pick<StartSettings, 'stand_ins'> | null): Failure | null {
  if (rules.stand_ins !== 'none' || Object.keys(settings?.stand_ins ?? {}).length === 0) return null;
  return {
    code: 'not_allowed_by_policy',
    message: 'stand_ins: the session replaces built-in tools, but policy.stand_ins is "none"',
  };
}

/**
 * The root of a session whose start names none: `folder`; if the policy forbids that, the first allowed folder, if any.
 */
export function defaultRootIn({ roots }: HostRules, folder: string): string {
  if (roots === 'any' || roots.some((root) => isBelow(root, folder))) return folder;
  return roots[0] ?? folder;
}

/** In rulings of calls, this name refers to the host's policy instead of to a session. No session can have it as its id. */
export const POLICY_CEILING = 'host.policy';

/** The permission rules above a session: of its ancestor sessions, and those of the host's policy on `run_command`. */
export function ceilingOf({ parent }: { readonly parent?: ParentLink | undefined }, rules: HostRules): Ceiling[] {
  const above = parent?.ceiling ?? [];
  const own = commandCeiling(rules);
  if (own.length === 0) return above;
  return [...above, { session: POLICY_CEILING, permissions: { rules: own, default: 'allow' } }];
}
