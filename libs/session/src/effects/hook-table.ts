/** The table of registrations as a session's journal holds it: in the order in which they are asked, and known by a fingerprint. */
import type { HookReply, HookRequest, Hooks, ServedPersonas } from '@coxswain/ports';
import {
  canonicalJson,
  type Failure,
  type HookRegistration,
  HookTable,
  inAskingOrder,
  isOfPersona,
  type Persona,
  problemSentences,
  readPersonaHooks,
  readStrictly,
  type TenantId,
} from '@coxswain/protocol';
import { sha256Hex } from '../journal/seal-record.ts';

/** A table that sessions may see. */
export interface SeenTable {
  readonly table: HookTable;
  readonly fingerprint: string;
}

/**
 * The host's table for a tenant now, with the hooks of personas; or why no session may see it: too many registrations, or one
 * that is none.
 * @param ofPersonas those of the session's persona, and of the one that has just handed it over.
 */
export function seenTable(
  hooks: Hooks,
  tenant: TenantId,
  ofPersonas: readonly HookRegistration[],
): SeenTable | Failure {
  const registered = [...ofPersonas, ...hooks.table(tenant).filter((registration) => !isOfPersona(registration))];
  const parsed = readStrictly(HookTable, inAskingOrder(registered));
  // To leave some out would be to let through what they guard.
  if (!parsed.ok) {
    const told = problemSentences(parsed.problems).join('; ');
    return { code: 'hooks_invalid', message: `the hook table is invalid: ${told}` };
  }
  return { table: parsed.data, fingerprint: sha256Hex(canonicalJson(parsed.data)) };
}

/** The hooks of a persona as its sessions see them; or why none of its sessions may begin. */
export function hooksOfPersona(persona: Persona, version: string): readonly HookRegistration[] | Failure {
  const read = readPersonaHooks(persona, version);
  // To leave one out would be to let through what it guards.
  if ('problem' in read)
    return { code: 'hooks_invalid', message: `persona ${persona.name}: ${problemSentences([read.problem])[0]}` };
  return read.hooks.map(({ registration }) => registration);
}

/** Whoever answers for a registration: the host's hooks, or where the persona is served that it is one of. */
export function asker(hooks: Hooks, served: ServedPersonas | undefined): Pick<Hooks, 'ask'> {
  return {
    async ask(request: HookRequest, signal: AbortSignal): Promise<HookReply> {
      const { persona = '', persona_version } = request.registration;
      if (persona_version === undefined) return hooks.ask(request, signal);
      if (served) return served.askHook(request, signal);
      const message = `no instance of persona ${persona} ${persona_version} is alive to run its handlers`;
      return { status: 'failed', code: 'hook_unavailable', message };
    },
  };
}
