/** The rules of the host for a session. */
import { type HostRules, OPEN_RULES, type StartSettings, type TenantId } from '@coxswain/protocol';

/** Gives the rules of a tenant, for restricted senders and their sessions or for the others; see `rulesFor` of the protocol. */
export type RulesFor = (tenant: TenantId, restricted: boolean) => HostRules;

/** The ports of the policy check. */
export interface PolicyPorts {
  /** The rules of the host's policy. Without it {@link OPEN_RULES} apply to every command. */
  readonly rulesFor?: RulesFor | undefined;
}

/** The rules of a session, for each use of a name that its start gives. */
export function rulesOfSession(
  { rulesFor }: PolicyPorts,
  tenant: TenantId,
  settings: Pick<StartSettings, 'restricted'> | null,
): HostRules {
  return rulesFor?.(tenant, settings?.restricted === true) ?? OPEN_RULES;
}
