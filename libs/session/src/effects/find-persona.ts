/** Which persona a session has: one that came with its start, one that a host knows by name, or one that is served. */
import type { Personas, ServedPersonas } from '@coxswain/ports';
import type { Failure, Persona, PersonaSource, StartSettings, TenantId } from '@coxswain/protocol';

/** The personas that a host knows by name. */
export interface KnownPersonas {
  readonly personas: Personas;
  /** Personas that processes of their own serve; where there are none, hosts run every step themselves. */
  readonly served?: ServedPersonas | undefined;
}

/** A persona, and who runs it. */
export interface FoundPersona {
  readonly definition: Persona;
  readonly source: PersonaSource;
  /** Processes of its own run its steps and tools. */
  readonly served?: true | undefined;
}

/** The persona of a session that names none. */
const PLAIN_PERSONA: Persona = {
  name: 'assistant',
  prompt: 'You are a careful assistant. Use the tools that are available. Report what you did and what you found.',
};

/** The persona that a start asks for; a failure where there is none of that name. */
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
      message: `there is no persona ${String(asked)}; known personas: ${names.join(', ') || 'none'}`,
    };
  }
  return found;
}

/** Those that somebody serves now come before those of the host's own, and these before such as nobody serves now. */
export async function namedPersona(
  { personas, served }: KnownPersonas,
  tenant: TenantId,
  name: string,
): Promise<FoundPersona | null> {
  const announced = served?.find(tenant, name);
  const isServed = announced && served?.isServed(tenant, name, announced.version);
  const own = isServed ? null : await personas.find(name);
  if (own) return { definition: own, source: 'host' };
  return announced ? { definition: announced.definition, source: 'served', served: true } : null;
}

/** All names by which {@link namedPersona} finds one, in order. */
export async function personaNames({ personas, served }: KnownPersonas, tenant: TenantId): Promise<string[]> {
  return [...new Set([...(await personas.names()), ...(served?.names(tenant) ?? [])])].sort();
}
