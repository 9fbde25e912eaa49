/** Finds the personas of starts, delegations and hand-offs. Also the version and the identity of a persona. */
import type { Personas, ServedPersonas } from '@coxswain/ports';
import {
  canonicalJson,
  type Failure,
  type Persona,
  type PersonaIdentity,
  type PersonaSource,
  type StartChildBody,
  type StartSettings,
  type TenantId,
  type ToolDefinition,
} from '@coxswain/protocol';
import { sha256Hex } from '../journal/append-record.ts';
import type { PinnedPersona } from '../view/transcript.ts';

/** Ports that find personas by name. */
export interface KnownPersonas {
  readonly personas: Personas;
  /** Personas served by other processes. Without it, the host runs every step itself. */
  readonly served?: ServedPersonas | undefined;
}

/** A persona, the source of its definition, and whether other processes run it. */
export interface FoundPersona {
  readonly definition: Persona;
  readonly source: PersonaSource;
  /** Whether other processes run its steps and tools. */
  readonly served?: true | undefined;
  /** The tools that were announced with the definition. */
  readonly servedTools?: readonly ToolDefinition[] | undefined;
}

/** Maximum number of known personas in a failure. */
const LISTED_MAX = 64;

/** The persona of a session whose start names none. */
const PLAIN_PERSONA: Persona = {
  name: 'assistant',
  prompt: 'You are a careful assistant. Use the tools that are available. Report what you did and what you found.',
};

/**
 * The persona that a start names or defines; without one, the built-in persona. A failure for an unknown name.
 * @throws errors of the port `Personas`.
 */
export async function findPersona(
  known: KnownPersonas,
  tenant: TenantId,
  asked: StartSettings['persona'],
): Promise<FoundPersona | Failure> {
  const found =
    typeof asked === 'string'
      ? await namedPersona(known, tenant, asked)
      : asked
        ? { definition: asked, source: 'request' as const }
        : { definition: PLAIN_PERSONA, source: 'built_in' as const };
  if (!found) {
    const names = await personaNames(known, tenant);
    return {
      code: 'persona_not_found',
      message: `there is no persona ${String(asked)}; known personas: ${listed(names)}`,
    };
  }
  return found;
}

/**
 * The persona with a name: the served one if its newest version has a live instance; else the host's own; else the
 * served one without a live instance. Null for an unknown name.
 * @throws errors of the port `Personas`.
 */
export async function namedPersona(
  { personas, served }: KnownPersonas,
  tenant: TenantId,
  name: string,
): Promise<FoundPersona | null> {
  const announced = served?.find(tenant, name);
  const isServed = announced && served?.isServed(tenant, name, announced.version);
  const own = isServed ? null : await personas.find(name);
  if (own) return { definition: own, source: 'host' };
  if (!announced) return null;
  const { definition, tools } = announced;
  return { definition, source: 'served', served: true, servedTools: tools };
}

/** All names that {@link namedPersona} finds, sorted. @throws errors of the port `Personas`. */
export async function personaNames({ personas, served }: KnownPersonas, tenant: TenantId): Promise<string[]> {
  return [...new Set([...(await personas.names()), ...(served?.names(tenant) ?? [])])].sort();
}

/** A persona (`definition`), and how a start command refers to it (`reference`): by name, or as a definition. */
export type ChosenPersona = {
  readonly reference: NonNullable<StartChildBody['persona']>;
  readonly definition: Persona;
};

/**
 * Finds the persona that a delegation or hand-off names: first the session's own persona, then the personas of its
 * start, then {@link namedPersona}. For the own persona, if it is a served one, {@link namedPersona} comes first.
 * @param session `persona`: its own persona, as pinned. `ofStart`: the personas of its start.
 * @returns for an unknown name, `persona_not_found` with known names, at most {@link LISTED_MAX}.
 * @throws errors of the port `Personas`.
 */
export async function chosenPersona(
  known: KnownPersonas,
  tenant: TenantId,
  session: { readonly persona: PinnedPersona | null; readonly ofStart: readonly Persona[] },
  name: string,
): Promise<ChosenPersona | Failure> {
  const { ofStart } = session;
  const { definition: own, served } = session.persona ?? {};
  const carried = own?.name === name ? own : ofStart.find((persona) => persona.name === name);
  // Only a reference by name gives a child the tools of a served persona; its definition lacks them.
  const byName = carried && !(carried === own && served) ? null : await namedPersona(known, tenant, name);
  if (byName) return { reference: name, definition: byName.definition };
  if (carried) return { reference: carried, definition: carried };
  const names = new Set([own?.name, ...ofStart.map((persona) => persona.name), ...(await personaNames(known, tenant))]);
  const there = [...names].filter((one) => one !== undefined).sort();
  return { code: 'persona_not_found', message: `there is no persona ${name}; known personas: ${listed(there)}` };
}

/** Names in a failure. A model may read it, and a tenant may have thousands of personas. */
function listed(names: readonly string[]): string {
  if (names.length === 0) return 'none';
  const more = names.length > LISTED_MAX ? ` and ${names.length - LISTED_MAX} more` : '';
  return names.slice(0, LISTED_MAX).join(', ') + more;
}

/** The persona's own `version`, or else a hash of its whole definition, with prompt and skills. */
export function personaVersion(persona: Persona): string {
  return persona.version ?? sha256Hex(canonicalJson(persona)).slice(0, 16);
}

/**
 * The identity that remembered rules are bound to, besides the persona's name and the root. It has a hash of the
 * definition, because equal names and versions do not prove equal definitions.
 */
export function identityOf({ definition, source }: FoundPersona): PersonaIdentity {
  return { source, fingerprint: sha256Hex(canonicalJson(definition)) };
}
