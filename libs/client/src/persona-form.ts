/** Converts personas between camelCase in code and their wire form. */
import {
  type CamelCased,
  fromWire,
  Persona,
  type PersonaInput,
  pathFromWire,
  pathText,
  problemSentences,
  readPersona,
  type SchemaProblem,
  toWire,
} from '@coxswain/protocol';
import { namedHandlers, type PersonaHandlers } from './persona-handlers.ts';

/** A persona with the members of a persona file in camelCase. */
export type PersonaSettings = CamelCased<PersonaInput>;

/** The result of reading a persona in code: its wire form and its functions, or the problems. */
export type ReadPersonaDefinition =
  | { readonly ok: true; readonly persona: Persona; readonly definition: unknown; readonly handlers: PersonaHandlers }
  | { readonly ok: false; readonly problems: readonly string[] };

/**
 * Validates a persona in code.
 * @returns `definition`: the persona with names instead of functions; the same object if it has no functions and no Zod
 *   schema.
 * @throws OutputSchemaError for an `output` without a JSON Schema.
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
  return { ...problem, path: [pathFromWire(Persona, pathText(problem.path))] };
}

/** Converts a persona from a file to camelCase. */
export function personaFromWire(persona: Persona): PersonaSettings {
  return fromWire(Persona, persona) as PersonaSettings;
}
