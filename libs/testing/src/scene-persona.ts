/** Reads the persona of a scene: from a file, a folder, a module, or the test itself. */
import { type PersonaDefinition, PersonaDefinitionError } from '@coxswain/client';
import { type LoadedPersona, loadPersona } from '@coxswain/personas';
import { SceneError } from './testing-errors.ts';

/** A definition, the return value of `definePersona`, or a path as in `cox serve personas`. */
export type ScenePersona = PersonaDefinition | string;

/** Reads a persona. @throws SceneError for an invalid definition; the errors of loading a file or a module. */
export function readScenePersona(given: ScenePersona): Promise<LoadedPersona> {
  return loadPersona(given, process.cwd()).catch((error: unknown) => {
    throw error instanceof PersonaDefinitionError ? new SceneError(error.message, { cause: error }) : error;
  });
}
