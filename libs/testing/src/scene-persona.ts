/** The persona of a scene: from a file, a folder, a module, or the test itself. */
import { namedHandlers, type PersonaDefinition, type PersonaHandlers, type Tool } from '@coxswain/client';
import { isPersonaModule, loadPersonaHandlers, loadPersonaModule } from '@coxswain/personas';
import { readPersonaFile } from '@coxswain/personas/persona-file';
import {
  type AnyHandler,
  type Persona,
  pathText,
  problemSentences,
  readPersona,
  readPersonaHooks,
} from '@coxswain/protocol';
import { SceneError } from './testing-errors.ts';

/** A definition, what `definePersona` returns, or a path as `cox serve personas` takes it. */
export type ScenePersona = PersonaDefinition | string;

/** A persona that was read. */
export interface ReadScenePersona {
  readonly persona: Persona;
  /** Code of its hooks, by the ids of their registrations without the persona's name. */
  readonly handlers: Readonly<Record<string, AnyHandler>>;
  /** Which of those are asked before a daemon waits. */
  readonly idle: ReadonlySet<string>;
  /** As whoever serves it is given it: the definition, and its code by what that has as their `handler`. */
  readonly definition: PersonaDefinition;
  readonly named: PersonaHandlers;
  /** Tools that its module exports beside it. */
  readonly tools: readonly Tool[];
}

/** Reads it. @throws SceneError, or the error of the file or module, naming what is wrong and where. */
export async function readScenePersona(given: ScenePersona): Promise<ReadScenePersona> {
  if (typeof given !== 'string') return inCode(given, []);
  if (isPersonaModule(given)) {
    const { definition, tools = [] } = await loadPersonaModule(given);
    return inCode(definition, tools);
  }
  const { persona, folder, place } = await readPersonaFile(given);
  return withHandlers(persona, await loadPersonaHandlers(persona, folder, place), []);
}

function inCode(definition: PersonaDefinition, tools: readonly Tool[]): ReadScenePersona {
  const named = namedHandlers(definition);
  const read = readPersona(named.definition);
  if (!read.ok) throw new SceneError(`the persona is not valid: ${problemSentences(read.problems).join('; ')}`);
  return withHandlers(read.data, named.handlers, tools);
}

function withHandlers(persona: Persona, found: PersonaHandlers, tools: readonly Tool[]): ReadScenePersona {
  const read = readPersonaHooks(persona, '0');
  if ('problem' in read) throw new SceneError(problemSentences([read.problem])[0]);
  const handlers: Record<string, AnyHandler> = {};
  const idle = new Set<string>();
  for (const { registration, handler, path } of read.hooks) {
    if (handler === undefined) continue;
    const code = found[handler];
    if (!code) throw new SceneError(`the persona ${persona.name}: ${pathText(path)}: there is no code for ${handler}`);
    const id = registration.id.slice(persona.name.length + 1);
    handlers[id] = code;
    if (registration.point === 'session_idle') idle.add(id);
  }
  return { persona, handlers, idle, definition: persona as PersonaDefinition, named: found, tools };
}
