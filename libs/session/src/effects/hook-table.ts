/** The hook table of a session: its registrations in the order of calls. Also the port that asks these hooks. */
import type { HookReply, HookRequest, Hooks, ServedPersonas } from '@coxswain/ports';
import {
  canonicalJson,
  type Failure,
  type HookRegistration,
  HookTable,
  inCallOrder,
  isOfPersona,
  type Persona,
  problemSentences,
  readPersonaHooks,
  readStrictly,
  type TenantId,
} from '@coxswain/protocol';
import { sha256Hex } from '../journal/append-record.ts';

/** A valid hook table, and the SHA-256 of its canonical JSON. */
export interface SessionHookTable {
  readonly table: HookTable;
  readonly fingerprint: string;
}

/**
 * The host's hook table for a tenant, with the hooks of personas; or the failure if there are too many registrations,
 * an invalid one, or two with one id at one point.
 * @param ofPersonas hooks of the session's persona, and of the persona that just handed it over.
 */
export function buildHookTable(
  hooks: Hooks,
  tenant: TenantId,
  ofPersonas: readonly HookRegistration[],
): SessionHookTable | Failure {
  const registered = [...ofPersonas, ...hooks.table(tenant).filter((registration) => !isOfPersona(registration))];
  const parsed = readStrictly(HookTable, inCallOrder(registered));
  // A shortened table would let through what the missing hooks guard against.
  if (!parsed.ok) {
    const problems = problemSentences(parsed.problems).join('; ');
    return { code: 'hooks_invalid', message: `the hook table is invalid: ${problems}` };
  }
  return { table: parsed.data, fingerprint: sha256Hex(canonicalJson(parsed.data)) };
}

/** The registrations of a persona's own hooks; or the failure, if one is invalid: its sessions cannot start. */
export function hooksOfPersona(persona: Persona, version: string): readonly HookRegistration[] | Failure {
  const read = readPersonaHooks(persona, version);
  // A missing hook would let through what it guards against.
  if ('problem' in read)
    return { code: 'hooks_invalid', message: `persona ${persona.name}: ${problemSentences([read.problem])[0]}` };
  return read.hooks.map(({ registration }) => registration);
}

/**
 * Asks each registration at its port: hooks of a persona at the port of served personas, all others at `hooks`. On a
 * host without the port of served personas, the hooks of personas are unavailable.
 */
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
