/** Personas in code, with the names of TypeScript, and the same personas as hosts know them. */
import {
  type CamelCased,
  fromWire,
  Persona,
  type PersonaInput,
  pathText,
  placeFromWire,
  problemSentences,
  readPersona,
  type SchemaProblem,
  toWire,
} from '@coxswain/protocol';
import { namedHandlers, type PersonaHandlers } from './persona-handlers.ts';

/** A persona with the members of a file, and the names of TypeScript. */
export type PersonaSettings = CamelCased<PersonaInput>;

/** A persona in code as it was read: what hosts know of it and its handlers, or what is wrong with it. */
export type ReadPersonaDefinition =
  | { readonly ok: true; readonly persona: Persona; readonly definition: unknown; readonly handlers: PersonaHandlers }
  | { readonly ok: false; readonly problems: readonly string[] };

/**
 * Reads a persona in code.
 * @returns `definition`: the persona with names instead of functions; the same object if it has no functions.
 * @throws OutputSchemaError for an `output` that has no JSON Schema.
 */
export function readPersonaDefinition(given: unknown): ReadPersonaDefinition {
  const { definition, handlers } = namedHandlers(given);
  const form = toWire(Persona, definition as PersonaSettings);
  if (!form.ok) return { ok: false, problems: [`${pathText(form.path)} ${form.words}`] };
  const read = readPersona(form.value);
  if (!read.ok) return { ok: false, problems: problemSentences(read.problems.map(inCallersNames)) };
  return { ok: true, persona: read.data, definition, handlers };
}

function inCallersNames(problem: SchemaProblem): SchemaProblem {
  return { ...problem, path: [placeFromWire(Persona, pathText(problem.path))] };
}

/** A persona that was read from a file, as a program writes it. */
export function personaFromWire(persona: Persona): PersonaSettings {
  return fromWire(Persona, persona) as PersonaSettings;
}
