/** A persona with its code, as a program gives it: a definition, or the path of a file, a folder or a module. */
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

/** A persona that was loaded, and checked. */
export interface LoadedPersona extends Omit<PersonaToServe, 'definition'> {
  readonly persona: Persona;
  /** The same as a program writes it. */
  readonly definition: PersonaDefinition;
  readonly tools: readonly Tool[];
  /** The code of its hooks, by what the definition has as their `handler`. */
  readonly handlers: PersonaHandlers;
  /** The same code, by the ids of the registrations without the persona's name. */
  readonly handlersById: Readonly<Record<string, AnyHandler>>;
  /** Ids of those that are asked before a daemon waits. */
  readonly idle: ReadonlySet<string>;
}

/**
 * Loads a persona.
 * @param given a definition, or a path as `cox serve personas` takes it.
 * @param folder where relative paths begin: the one that is given, and those in a definition.
 * @throws PersonaDefinitionError, PersonaFileError or PersonaModuleError, naming what is wrong and where.
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
