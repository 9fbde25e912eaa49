/** A persona with its code, as a program gives it: a definition, or the path of a file, a folder or a module. */
import { resolve } from 'node:path';
import {
  definePersona,
  namedHandlers,
  type PersonaDefinition,
  type PersonaHandlers,
  type ServedToolDefinition,
} from '@coxswain/client';
import {
  type AnyHandler,
  type Persona,
  pathText,
  problemSentences,
  readPersona,
  readPersonaHooks,
} from '@coxswain/protocol';
import { loadPersonaHandlers } from './load-persona-handlers.ts';
import { isPersonaModule, loadPersonaModule, PersonaModuleError } from './load-persona-module.ts';
import { readPersonaFile } from './persona-file.ts';
import type { PersonaToServe } from './start-persona-service.ts';

/** A persona that was loaded, and checked. */
export interface LoadedPersona extends PersonaToServe {
  readonly persona: Persona;
  readonly tools: readonly ServedToolDefinition[];
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
  if (typeof given !== 'string') return withCode({ definition: definePersona(given as never), folder });
  if (isPersonaModule(given)) return withCode(await loadPersonaModule(resolve(folder, given)));
  const { persona, folder: ownFolder, place } = await readPersonaFile(resolve(folder, given));
  const handlers = await loadPersonaHandlers(persona, ownFolder, place);
  return withCode({ definition: persona as PersonaDefinition, handlers, folder: ownFolder });
}

function withCode({ definition, handlers, tools = [], folder }: PersonaToServe): LoadedPersona {
  const named = namedHandlers(definition);
  const read = readPersona(named.definition);
  if (!read.ok) throw new PersonaModuleError(problemSentences(read.problems).join('; '));
  const persona = read.data;
  const code = { ...named.handlers, ...handlers };
  const hooks = readPersonaHooks(persona, '0');
  if ('problem' in hooks) throw new PersonaModuleError(problemSentences([hooks.problem])[0] as string);
  const handlersById: Record<string, AnyHandler> = {};
  const idle = new Set<string>();
  for (const { registration, handler, path } of hooks.hooks) {
    if (handler === undefined) continue;
    const found = code[handler];
    if (!found)
      throw new PersonaModuleError(`the persona ${persona.name}: ${pathText(path)}: there is no code for ${handler}`);
    const id = registration.id.slice(persona.name.length + 1);
    handlersById[id] = found;
    if (registration.point === 'session_idle') idle.add(id);
  }
  return { definition: persona as PersonaDefinition, persona, handlers: code, handlersById, idle, tools, folder };
}
