/** Personas as people write them: a YAML or JSON file, or a folder with persona.yaml and prompt.md. */
import { readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import {
  ID_PATTERN,
  notYetInPersona,
  Persona,
  type PersonaInput,
  problemSentences,
  readStrictly,
} from '@coxswain/protocol';
import { parse } from 'yaml';
import { usageError } from '../line/cli-error.ts';

const FILE_MAX_BYTES = 1024 * 1024;

/** A persona by its name, for the host to find; or its definition from a file. */
export type PersonaChoice = string | { readonly input: PersonaInput; readonly persona: Persona };

/**
 * What `--persona` means. A name is looked for in the folder `personas` first, and else left to the host; anything
 * with a dot or a slash is a path.
 * @throws CliError with exit code 2 naming the path of what is wrong.
 */
export async function choosePersona(given: string, folder: string): Promise<PersonaChoice> {
  if (/[./\\]/.test(given)) return readPersona(resolve(folder, given));
  if (!ID_PATTERN.test(given)) {
    throw usageError(
      `--persona "${given.slice(0, 64)}": a name is 1 to 64 characters of A-Z a-z 0-9 _ -; a file has a dot or a slash`,
    );
  }
  for (const candidate of [given, `${given}.yaml`, `${given}.yml`, `${given}.json`]) {
    const path = join(folder, 'personas', candidate);
    if (await exists(path)) return readPersona(path);
  }
  return given;
}

/** Reads and checks a persona. */
export async function readPersona(path: string): Promise<Exclude<PersonaChoice, string>> {
  const value = (await isFolder(path)) ? await readFolder(path) : parseYaml(path, await readText(path));
  const read = readStrictly(Persona, value);
  if (!read.ok) throw usageError(`persona ${path}: ${problemSentences(read.problems).join('; ')}`);
  const later = notYetInPersona(read.data);
  if (later !== null) throw usageError(`persona ${path}: ${later} is not there yet in this release`);
  return { input: value as PersonaInput, persona: read.data };
}

async function readFolder(path: string): Promise<unknown> {
  const value = parseYaml(join(path, 'persona.yaml'), await readText(join(path, 'persona.yaml')));
  const prompt = join(path, 'prompt.md');
  if (!(await exists(prompt)) || typeof value !== 'object' || value === null) return value;
  if ('prompt' in value) throw usageError(`persona ${path}: the prompt stands in persona.yaml and in prompt.md`);
  return { ...value, prompt: await readText(prompt) };
}

function parseYaml(path: string, text: string): unknown {
  try {
    // JSON is YAML. The bound on aliases keeps a small file from becoming a large value.
    return parse(text, { maxAliasCount: 100 });
  } catch (error) {
    throw usageError(`persona ${path}: ${(error as Error).message.trimEnd()}`);
  }
}

async function readText(path: string): Promise<string> {
  try {
    const { size } = await stat(path);
    if (size > FILE_MAX_BYTES) throw usageError(`${path} has ${size} bytes; a persona has at most ${FILE_MAX_BYTES}`);
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw usageError(`--persona ${path} cannot be read: ${(error as Error).message}`);
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch {
    // Not there, or not to be seen: then it is not what was meant.
    return false;
  }
}

async function isFolder(path: string): Promise<boolean> {
  return (await exists(path)) && (await stat(path)).isDirectory();
}
