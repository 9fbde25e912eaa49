/** The persona of a scene: from a file, a folder, a module, or the test itself. */
import { type PersonaDefinition, PersonaDefinitionError } from '@coxswain/client';
import { type LoadedPersona, loadPersona } from '@coxswain/personas';
import { SceneError } from './testing-errors.ts';

/** A definition, what `definePersona` returns, or a path as `cox serve personas` takes it. */
export type ScenePersona = PersonaDefinition | string;

/** Reads it. @throws SceneError for a definition that is not valid; what loading a file or a module throws. */
export function readScenePersona(given: ScenePersona): Promise<LoadedPersona> {
  return loadPersona(given, process.cwd()).catch((error: unknown) => {
    throw error instanceof PersonaDefinitionError ? new SceneError(error.message, { cause: error }) : error;
  });
}
