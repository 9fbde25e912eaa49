/** Rejects a start that could only fail, before a session exists. */
import type { Log } from '@coxswain/ports';
import { type CommandInput, type ErrorCode, isErrorCode, type SessionRef } from '@coxswain/protocol';
import { findPersona } from '../effects/find-persona.ts';
import { chooseModel, isFailure, type ProvisionPorts, type ProvisionSettings } from '../effects/provision-session.ts';
import { logRejection, rulesOfSession } from './check-policy.ts';

/**
 * Adds a problem to a start whose model this host cannot ask: no model, an unknown provider, no key, an invalid address, an
 * unreadable script or journal. A rejection costs nothing, while a session whose first run fails would have to be deleted.
 * Provisioning finds all other problems. A rejection by the policy, such as of a link out of its folders, is logged.
 * @returns the input unchanged if the model can be asked, if another process runs the persona's steps, or if a lookup
 *   fails now.
 */
export async function checkStart(
  ports: ProvisionPorts & { readonly log: Log },
  ref: SessionRef,
  input: CommandInput,
): Promise<CommandInput> {
  if (input.problem || input.verb !== 'start') return input;
  const settings = input.body as ProvisionSettings;
  try {
    const found = await findPersona(ports, ref.tenant, settings.persona);
    if (isFailure(found) || found.served) return input;
    const model = chooseModel(settings, found.definition, ports.defaultModel);
    const failure = isFailure(model)
      ? model
      : await ports.models.check(model, rulesOfSession(ports, ref.tenant, settings));
    if (!failure || failure.retryable || !isErrorCode(failure.code)) return input;
    const problem: { code: ErrorCode; message: string; field: string } = {
      code: failure.code,
      message: failure.message,
      field: failure.code === 'not_allowed_by_policy' && settings.base_url !== undefined ? 'base_url' : 'model',
    };
    if (problem.code === 'not_allowed_by_policy') logRejection(ports.log, ref, input, problem);
    return { ...input, problem };
  } catch {
    // The run looks it up again, and waits for it or fails with the reason.
    return input;
  }
}
