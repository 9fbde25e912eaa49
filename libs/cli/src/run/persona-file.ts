/**
 * Personas as people write them: a YAML or JSON file, or a folder with persona.yaml, prompt.md and skills. What is wrong is
 * told by file, line and column.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type LocatedYaml, readLocatedYaml } from '@coxswain/adapter-hooks/located-yaml';
import {
  ID_PATTERN,
  type Persona,
  type PersonaInput,
  pathText,
  readPersona as readDefinition,
  type Skill,
} from '@coxswain/protocol';
import { usageError } from '../line/cli-error.ts';
import { readSkill } from './skill-folder.ts';
import { utf8Of } from './utf8-text.ts';

const FILE_MAX_BYTES = 1024 * 1024;
/** Problems that are told of one file. */
const TOLD_MAX = 5;

/** The folder in which personas are looked for by name. */
export const PERSONAS_FOLDER = 'personas';
const ENDINGS = ['', '.yaml', '.yml', '.json'];

/** A persona by its name, for the host to find; or its definition from a file. */
export type PersonaChoice =
  | string
  | {
      readonly input: PersonaInput;
      readonly persona: Persona;
      readonly place: PlaceIn;
      /** Where relative paths in it begin. */
      readonly folder: string;
    };

/** Where a path of a definition stands, as `file:line:column`. */
export type PlaceIn = (path: readonly PropertyKey[]) => string;

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
  const paths = ENDINGS.map((ending) => join(folder, PERSONAS_FOLDER, `${given}${ending}`));
  const kinds = await Promise.all(paths.map(whatLiesAt));
  // A folder of that name need not be the persona: what a file beside it works with may lie there.
  const at = kinds.includes('persona') ? kinds.indexOf('persona') : kinds.indexOf('folder of personas');
  return at < 0 ? given : readPersona(paths[at] as string);
}

/**
 * What `--crew` means, each time that it is given: a persona as {@link choosePersona} finds it, or a folder that has some, of
 * which the lead is left out.
 * @param lead the name of the persona that is to delegate to them.
 * @throws CliError with exit code 2 naming what is wrong.
 */
export async function chooseCrew(
  given: readonly string[],
  folder: string,
  lead: string | undefined,
): Promise<Exclude<PersonaChoice, string>[]> {
  const crew: Exclude<PersonaChoice, string>[] = [];
  for (const one of given) {
    const path = resolve(folder, one);
    if ((await whatLiesAt(path)) === 'folder of personas' && (await isFolder(path))) {
      const members = await Promise.all((await personaPaths(path)).map(readPersona));
      const others = members.filter(({ persona }) => persona.name !== lead);
      if (others.length === 0) throw usageError(`--crew ${one}: no persona lies in ${path}`);
      crew.push(...others);
      continue;
    }
    const chosen = await choosePersona(one, folder);
    if (typeof chosen === 'string')
      throw usageError(
        `--crew ${one}: there is no ${join(folder, PERSONAS_FOLDER, one)}.yaml, and no folder of that name; ` +
          'personas that the host knows need no --crew',
      );
    crew.push(chosen);
  }
  return crew;
}

/** Where a folder has personas: files and folders with a persona.yaml, in the order of their names. */
export async function personaPaths(folder: string): Promise<string[]> {
  const paths: string[] = [];
  for (const entry of (await readdir(folder)).sort()) {
    const path = join(folder, entry);
    if (/\.(ya?ml|json)$/.test(entry) || (await exists(join(path, 'persona.yaml')))) paths.push(path);
  }
  return paths;
}

/** What a path is: a file or a folder with a persona.yaml, a folder in which personas may lie, or nothing. */
export async function whatLiesAt(path: string): Promise<'persona' | 'folder of personas' | 'nothing'> {
  if (!(await exists(path))) return 'nothing';
  if (!(await isFolder(path)) || (await exists(join(path, 'persona.yaml')))) return 'persona';
  return 'folder of personas';
}

/** Reads and checks a persona: a file, or a folder with a persona.yaml. @throws CliError as {@link choosePersona} does. */
export async function readPersona(path: string): Promise<Exclude<PersonaChoice, string>> {
  const inFolder = await isFolder(path);
  const file = inFolder ? join(path, 'persona.yaml') : path;
  if (inFolder && !(await exists(file))) throw usageError(`persona ${path}: this folder has no persona.yaml`);
  const yaml = readLocatedYaml(await readText(file));
  if (!yaml.ok) throw usageError(`persona ${file}:${yaml.at}: ${yaml.problem}`);
  if (yaml.value === undefined) throw usageError(`persona ${file}: is empty; a persona has a name at least`);
  const value = await withItsFiles(yaml, file, inFolder ? path : null);
  const read = readDefinition(value);
  if (!read.ok) {
    const told = read.problems.slice(0, TOLD_MAX).map(({ path: at, kind, words }) => {
      const place = pathText(at);
      if (kind !== 'unknown_key') return `${file}:${yaml.at(at)}: ${place === '' ? words : `${place}: ${words}`}`;
      return `${file}:${yaml.at(at.slice(0, -1), String(at.at(-1)))}: unknown key "${place}"${words}`;
    });
    throw usageError(`persona ${told.join('; ')}`);
  }
  const place: PlaceIn = (at) => `${file}:${yaml.at(at)}`;
  return { input: value as PersonaInput, persona: read.data, place, folder: dirname(file) };
}

/** The value of a persona's file with what lies beside it: prompt.md of its folder, and skills, whole. */
async function withItsFiles({ value, at }: LocatedYaml, file: string, folder: string | null): Promise<unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const whole: Record<string, unknown> = { ...value };
  const prompt = folder === null ? null : join(folder, 'prompt.md');
  if (prompt !== null && (await exists(prompt))) {
    if ('prompt' in value)
      throw usageError(`persona ${file}:${at([], 'prompt')}: the prompt stands here and in ${prompt}`);
    whole.prompt = await readText(prompt);
  }
  const beside = join(dirname(file), 'skills');
  if (Array.isArray(whole.skills)) {
    const skills: unknown[] = [];
    // What is no text is a skill that is written out here, or is told by the schema that it is none.
    for (const [index, named] of whole.skills.entries()) {
      if (typeof named !== 'string') skills.push(named);
      else skills.push(await skillNamed(named, beside, `${file}:${at(['skills', index])}: skills[${index}]`));
    }
    whole.skills = skills;
  } else if (folder !== null && whole.skills === undefined && (await isFolder(beside))) {
    const skills = await skillsIn(beside);
    if (skills.length > 0) whole.skills = skills;
  }
  return whole;
}

/** A skill by its name in the folder `skills` beside the file, or by the path of its folder from there. */
async function skillNamed(named: string, beside: string, place: string): Promise<Skill> {
  const path = /[./\\]/.test(named) ? resolve(dirname(beside), named) : join(beside, named);
  if (!(await isFolder(path))) throw usageError(`persona ${place}: there is no folder ${path}`);
  return readSkill(path);
}

async function skillsIn(folder: string): Promise<Skill[]> {
  const skills: Skill[] = [];
  for (const entry of (await readdir(folder)).sort()) {
    const path = join(folder, entry);
    if (!entry.startsWith('.') && (await isFolder(path))) skills.push(await readSkill(path));
  }
  return skills;
}

async function readText(path: string): Promise<string> {
  try {
    const found = await stat(path);
    // A pipe or a device may never come to an end.
    if (!found.isFile()) throw usageError(`persona ${path}: is no file`);
    const { size } = found;
    if (size > FILE_MAX_BYTES)
      throw usageError(`persona ${path}: has ${size} bytes; a persona has at most ${FILE_MAX_BYTES}`);
    const text = utf8Of(await readFile(path));
    if (text === null) throw usageError(`persona ${path}: is not UTF-8`);
    return text;
  } catch (error) {
    const { syscall, code, message } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    throw usageError(`persona ${path}: ${code === 'ENOENT' ? 'there is no such file' : `cannot be read: ${message}`}`);
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
