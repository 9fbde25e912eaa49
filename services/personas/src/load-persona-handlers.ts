/** Loads the code of a persona's hooks from the modules that its file references. */

import type { PersonaHandlers } from '@coxswain/client';
import { type LoadedModule, loadHandler } from '@coxswain/handlers/load';
import { type AnyHandler, type Persona, pathText, readPersonaHooks } from '@coxswain/protocol';
import { PersonaModuleError } from './load-persona-module.ts';

/**
 * Loads each handler that a persona references as `./file.js#name`.
 * @param folder the folder of the persona's file. Relative paths start there.
 * @param placeOf maps a path in the definition to `file:line:column`.
 * @throws PersonaModuleError with the position and the reason.
 */
export async function loadPersonaHandlers(
  persona: Persona,
  folder: string,
  placeOf: (path: readonly PropertyKey[]) => string,
): Promise<PersonaHandlers> {
  const read = readPersonaHooks(persona, '0');
  if ('problem' in read) throw new PersonaModuleError(`${placeOf(read.problem.path)}: ${read.problem.words}`);
  const modules = new Map<string, Promise<LoadedModule>>();
  const handlers: Record<string, AnyHandler> = {};
  for (const { handler, handlerPath: path } of read.hooks) {
    if (handler === undefined || Object.hasOwn(handlers, handler)) continue;
    const [found, problem] = await loadHandler(handler, folder, modules);
    if (problem !== null) throw new PersonaModuleError(`${placeOf(path)}: ${pathText(path)}: ${problem}`);
    handlers[handler] = found;
  }
  return handlers;
}
