/** Applies the host's policy to a command before the command has any effect. */
import type { Log, StoredCommand } from '@coxswain/ports';
import {
  type CommandInput,
  checkRequest,
  type HostRules,
  OPEN_RULES,
  type SessionRef,
  type StartSettings,
  type TenantId,
} from '@coxswain/protocol';

/** Gives the rules of a tenant, for restricted senders and their sessions or for the others; see `rulesFor` of the protocol. */
export type RulesFor = (tenant: TenantId, restricted: boolean) => HostRules;

type Problem = NonNullable<CommandInput['problem']>;

/** The ports of the policy check. */
export interface PolicyPorts {
  /** The rules of the host's policy. Without it {@link OPEN_RULES} apply to every command. */
  readonly rulesFor?: RulesFor | undefined;
}

/**
 * The command with a problem if it names something that the policy does not allow. The rejection is logged, and the body is
 * dropped: its record keeps nothing of it. A rejection for a literal secret is logged too, without the value.
 */
export function withinPolicy(
  { rulesFor, log }: PolicyPorts & { readonly log: Log },
  { ref, restricted = false }: StoredCommand,
  input: CommandInput,
): CommandInput {
  const refuse = (problem: Problem): CommandInput => {
    logRejection(log, ref, input, problem);
    return { ...input, body: {}, problem };
  };
  if (input.problem?.code === 'secret_in_request') return refuse(input.problem);
  if (input.problem) return input;
  // Without a policy, OPEN_RULES still limit the modes of messages from other sessions.
  const rules = rulesFor?.(ref.tenant, restricted || input.body.restricted === true) ?? OPEN_RULES;
  const problem = checkRequest(rules, input.verb, input.body);
  return problem ? refuse(problem) : input;
}

/** Logs that the policy rejects a command: the sender, the field and the line of the policy. */
export function logRejection(log: Log, ref: SessionRef, input: CommandInput, { code, field, message }: Problem): void {
  const { verb, command_id, actor } = input;
  log.warn(
    { tenant: ref.tenant, session_id: ref.sessionId, verb, command_id, actor: actor?.name, code, field },
    `a command was rejected by the policy of this host: ${message}`,
  );
}

/** The rules of a session, for each use of a name that its start gives. */
export function rulesOfSession(
  { rulesFor }: PolicyPorts,
  tenant: TenantId,
  settings: Pick<StartSettings, 'restricted'> | null,
): HostRules {
  return rulesFor?.(tenant, settings?.restricted === true) ?? OPEN_RULES;
}
