/** Finds the persona that a command line names: a file, a folder, or a name. */
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import {
  type PersonaFile,
  PersonaFileError,
  personaPaths,
  readPersonaFile,
  whatLiesAt,
} from '@coxswain/personas/persona-file';
import { cutGraphemes, ID_PATTERN } from '@coxswain/protocol';
import { CliError, EXIT, usageError } from '../line/mod.ts';
import { personaOfFolder } from './file-effects.ts';
import type { FolderTrust } from './folder-trust.ts';

export { type PlaceIn, personaPaths, whatLiesAt } from '@coxswain/personas/persona-file';

/** The folder that is searched for personas by name. */
export const PERSONAS_FOLDER = 'personas';
const ENDINGS = ['', '.yaml', '.yml', '.json'];

/** The name of a persona, which the host resolves, or a definition from a file. */
export type PersonaChoice = string | PersonaFile;

/**
 * Reads the value of `--persona`. A value with a dot or a slash is a path. A name is searched in the folder `personas`;
 * the host resolves any other name.
 * @param trust required for a persona that a name finds, because the user may have meant another one. A path names the
 * file itself. Null if the persona is only shown.
 * @throws CliError with exit code 2 naming the path of the problem; `folder_not_trusted`.
 */
export async function choosePersona(given: string, folder: string, trust: FolderTrust | null): Promise<PersonaChoice> {
  if (/[./\\]/.test(given)) return readPersona(resolve(folder, given));
  if (!ID_PATTERN.test(given)) {
    throw usageError(
      `--persona "${cutGraphemes(given, 64)}": a name is 1 to 64 characters of A-Z a-z 0-9 _ -; a file has a dot or a slash`,
    );
  }
  const paths = ENDINGS.map((ending) => join(folder, PERSONAS_FOLDER, `${given}${ending}`));
  const kinds = await Promise.all(paths.map(whatLiesAt));
  // A folder of that name need not be the persona: it may contain parts of the file next to it.
  const at = kinds.includes('persona') ? kinds.indexOf('persona') : kinds.indexOf('folder of personas');
  if (at < 0) return given;
  const path = paths[at] as string;
  const file = await readPersona(path);
  const brought = personaOfFolder(path, file);
  if (brought !== null) await trust?.expect(brought);
  return file;
}

/**
 * Reads the values of `--crew`. Each value is a persona as {@link choosePersona} finds it, or a folder of personas. The
 * lead is left out of a folder.
 * @param lead the name of the persona that delegates to the crew.
 * @throws CliError with exit code 2 naming the problem; `folder_not_trusted`.
 */
export async function chooseCrew(
  given: readonly string[],
  folder: string,
  lead: string | undefined,
  trust: FolderTrust,
): Promise<Exclude<PersonaChoice, string>[]> {
  const crew: Exclude<PersonaChoice, string>[] = [];
  for (const one of given) {
    const path = resolve(folder, one);
    if ((await whatLiesAt(path)) === 'folder of personas' && (await stat(path)).isDirectory()) {
      const members = await Promise.all((await personaPaths(path)).map(readPersona));
      const others = members.filter(({ persona }) => persona.name !== lead);
      if (others.length === 0) throw usageError(`--crew ${one}: no persona in ${path}`);
      crew.push(...others);
      continue;
    }
    const chosen = await choosePersona(one, folder, trust);
    if (typeof chosen === 'string')
      throw usageError(
        `--crew ${one}: there is no ${join(folder, PERSONAS_FOLDER, one)}.yaml, and no folder of that name; ` +
          'personas that the host knows need no --crew',
      );
    crew.push(chosen);
  }
  return crew;
}

/**
 * Reads and checks a persona: a file, or a folder with a persona.yaml.
 * @throws CliError `persona_invalid` with exit code 2, naming the problem.
 */
export function readPersona(path: string): Promise<PersonaFile> {
  return readPersonaFile(path).catch((error: Error) => {
    throw error instanceof PersonaFileError ? new CliError(EXIT.usage, error.code, error.message) : error;
  });
}
