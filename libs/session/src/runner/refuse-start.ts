/** Starts that could only fail: refused before there is a session. */
import type { Log } from '@coxswain/ports';
import { type CommandInput, type ErrorCode, isErrorCode, type SessionRef } from '@coxswain/protocol';
import { findPersona } from '../effects/find-persona.ts';
import { chooseModel, isFailure, type ProvisionPorts, type ProvisionSettings } from '../effects/provision-session.ts';
import { logRejection, rulesOfSession } from './check-policy.ts';

/**
 * The start with a problem where its model cannot be asked on this host: none named, an unknown provider, no key, an
 * invalid address, a script or journal that cannot be read. A rejection costs nothing; a session whose first run fails
 * would have to be deleted. Everything else that a run needs is found out when it is provisioned.
 * What the policy refuses only here, such as a link that leads out of its folders, is logged.
 * @returns the input as it is where the model can be asked, where a process of its own runs the persona's steps, and
 *   where it is not known now.
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
    // What cannot be looked up now is looked up again by the run, which waits for it or says why it cannot.
    return input;
  }
}
