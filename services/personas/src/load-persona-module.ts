/** Loads a persona from a module. Its default export is the definition, and its export `tools` is a list of tools. */

import { dirname, resolve } from 'node:path';
import { readPersonaDefinition, type Tool } from '@coxswain/client';
import { HookModuleError, loadModule } from '@coxswain/handlers/load';
import type { Persona } from '@coxswain/protocol';
import type { PersonaToServe } from './start-persona-service.ts';

/** A module of a persona cannot be loaded, or has invalid exports. The message starts with its path. */
export class PersonaModuleError extends Error {
  override readonly name = 'PersonaModuleError';
  readonly code = 'persona_module_invalid';
}

/** Whether a path is a module, not a data file or a folder. */
export function isPersonaModule(path: string): boolean {
  return /\.[cm]?[jt]s$/.test(path);
}

/**
 * Loads a persona from a module.
 * @throws PersonaModuleError.
 */
export async function loadPersonaModule(path: string): Promise<PersonaToServe & { readonly definition: Persona }> {
  const file = resolve(path);
  const { exports } = await loadModule(file).catch((error: Error) => {
    throw error instanceof HookModuleError ? new PersonaModuleError(error.message, { cause: error }) : error;
  });
  const { default: definition, tools = [] } = exports as { default?: unknown; tools?: unknown };
  if (typeof definition !== 'object' || definition === null)
    throw new PersonaModuleError(
      `${file}: no persona in this module: export default definePersona({ name, prompt, … })`,
    );
  const read = readPersonaDefinition(definition);
  if (!read.ok) throw new PersonaModuleError(`${file}: ${read.problems.join('; ')}`);
  if (!Array.isArray(tools)) throw new PersonaModuleError(`${file}: its export tools must be a list of tools`);
  return {
    definition: read.persona,
    handlers: read.handlers,
    tools: tools as readonly Tool[],
    folder: dirname(file),
  };
}
