/** Loads a persona with its code, from a definition or the path of a file, a folder or a module. */
import { resolve } from 'node:path';
import {
  definePersona,
  type PersonaDefinition,
  PersonaDefinitionError,
  type PersonaHandlers,
  personaFromWire,
  readPersonaDefinition,
  type Tool,
} from '@coxswain/client';
import { type AnyHandler, type Persona, pathText, problemSentences, readPersonaHooks } from '@coxswain/protocol';
import { loadPersonaHandlers } from './load-persona-handlers.ts';
import { isPersonaModule, loadPersonaModule, PersonaModuleError } from './load-persona-module.ts';
import { readPersonaFile } from './persona-file.ts';
import type { PersonaToServe } from './start-persona-service.ts';

/** A loaded and validated persona. */
export interface LoadedPersona extends Omit<PersonaToServe, 'definition'> {
  readonly persona: Persona;
  /** The same persona in the form of `definePersona`. */
  readonly definition: PersonaDefinition;
  readonly tools: readonly Tool[];
  /** Code of its hooks, by the `handler` in the definition. */
  readonly handlers: PersonaHandlers;
  /** Code of its hooks, by registration id without the persona's name. */
  readonly handlersById: Readonly<Record<string, AnyHandler>>;
  /** Ids of the hooks at the point `session_idle`. */
  readonly idle: ReadonlySet<string>;
}

/**
 * Loads a persona.
 * @param given a definition, or a path as for `cox serve personas`.
 * @param folder base of the given path, and of relative paths in a given definition.
 * @throws PersonaDefinitionError, PersonaFileError or PersonaModuleError, with the position and the reason.
 */
export async function loadPersona(given: PersonaDefinition | string, folder: string): Promise<LoadedPersona> {
  if (typeof given !== 'string') {
    const read = readPersonaDefinition(definePersona(given as never));
    if (!read.ok) throw new PersonaDefinitionError(read.problems.join('; '));
    return withCode({ persona: read.persona, handlers: read.handlers, tools: [], folder });
  }
  if (isPersonaModule(given)) {
    const { definition, handlers = {}, tools = [], folder: own } = await loadPersonaModule(resolve(folder, given));
    return withCode({ persona: definition, handlers, tools, folder: own });
  }
  const { persona, folder: ownFolder, place } = await readPersonaFile(resolve(folder, given));
  const handlers = await loadPersonaHandlers(persona, ownFolder, place);
  return withCode({ persona, handlers, tools: [], folder: ownFolder });
}

type PersonaWithCode = Pick<LoadedPersona, 'persona' | 'handlers' | 'tools' | 'folder'>;

function withCode({ persona, handlers, tools, folder }: PersonaWithCode): LoadedPersona {
  const hooks = readPersonaHooks(persona, '0');
  if ('problem' in hooks) throw new PersonaModuleError(problemSentences([hooks.problem])[0] as string);
  const handlersById: Record<string, AnyHandler> = {};
  const idle = new Set<string>();
  for (const { registration, handler, path } of hooks.hooks) {
    if (handler === undefined) continue;
    const found = handlers[handler];
    if (!found)
      throw new PersonaModuleError(`the persona ${persona.name}: ${pathText(path)}: the code of ${handler} is missing`);
    const id = registration.id.slice(persona.name.length + 1);
    handlersById[id] = found;
    if (registration.point === 'session_idle') idle.add(id);
  }
  return { definition: personaFromWire(persona), persona, handlers, handlersById, idle, tools, folder };
}
