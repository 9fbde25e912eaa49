/** Code of the hooks of a persona that was read from a file: loaded where it is served, and nowhere else. */

import type { PersonaHandlers } from '@coxswain/client';
import { type LoadedModule, loadHandler } from '@coxswain/handlers/load';
import { type AnyHandler, type Persona, pathText, readPersonaHooks } from '@coxswain/protocol';
import { PersonaModuleError } from './load-persona-module.ts';

/**
 * Loads every handler that a persona names as `./file.js#name`.
 * @param folder where relative paths begin: that of the persona's file.
 * @param placeOf where in its file a path stands, as `file:line:column`.
 * @throws PersonaModuleError naming the place and what is wrong.
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
