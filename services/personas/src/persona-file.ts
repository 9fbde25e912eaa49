/**
 * Reads personas from a YAML or JSON file, or from a folder with persona.yaml, prompt.md and skills. Errors have the
 * file, line and column.
 */
import { readdir, realpath, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { type LocatedYaml, readLocatedYaml } from '@coxswain/adapter-hooks/located-yaml';
import { readRegularFile, UnreadableFileError } from '@coxswain/ports/regular-file';
import {
  type Persona,
  type PersonaInput,
  pathText,
  readPersona as readDefinition,
  type Skill,
  utf8Of,
} from '@coxswain/protocol';
import { PersonaFileError } from './persona-file-error.ts';
import { readSkill } from './skill-folder.ts';

const FILE_MAX_BYTES = 1024 * 1024;
/** Maximum number of problems that are reported for a file. */
const TOLD_MAX = 5;

/** Maps a path in a definition to `file:line:column`. */
export type PlaceIn = (path: readonly PropertyKey[]) => string;

/** A persona from a file. */
export interface PersonaFile {
  readonly input: PersonaInput;
  readonly persona: Persona;
  readonly place: PlaceIn;
  /** The base of relative paths in the file. */
  readonly folder: string;
}

/** Paths of the personas in a folder, sorted by name: YAML and JSON files, and folders with a persona.yaml. */
export async function personaPaths(folder: string): Promise<string[]> {
  const paths: string[] = [];
  for (const entry of (await readdir(folder)).sort()) {
    const path = join(folder, entry);
    if (/\.(ya?ml|json)$/.test(entry) || (await exists(join(path, 'persona.yaml')))) paths.push(path);
  }
  return paths;
}

/** The kind of a path: a persona (a file, or a folder with a persona.yaml), another folder, or a missing path. */
export async function whatLiesAt(path: string): Promise<'persona' | 'folder of personas' | 'nothing'> {
  if (!(await exists(path))) return 'nothing';
  if (!(await isFolder(path)) || (await exists(join(path, 'persona.yaml')))) return 'persona';
  return 'folder of personas';
}

/**
 * Reads and validates a persona from a file, or from a folder with a persona.yaml. The folder may be a link. A link in
 * it that leads out of it is rejected: a cloned folder could make any file of the user a prompt.
 * @throws PersonaFileError with the position of the problem.
 */
export async function readPersonaFile(path: string): Promise<PersonaFile> {
  const inFolder = await isFolder(path);
  const file = inFolder ? join(path, 'persona.yaml') : path;
  if (inFolder && !(await exists(file))) throw new PersonaFileError(`persona ${path}: this folder has no persona.yaml`);
  const folder = inFolder ? path : null;
  const yaml = await readLocatedYaml(await readText(file, folder));
  if (!yaml.ok) throw new PersonaFileError(`persona ${file}:${yaml.at}: ${yaml.problem}`);
  if (yaml.value === undefined)
    throw new PersonaFileError(`persona ${file}: is empty; a persona needs at least a name`);
  const value = await withItsFiles(yaml, file, folder);
  const read = readDefinition(value);
  if (!read.ok) {
    const told = read.problems.slice(0, TOLD_MAX).map(({ path: at, kind, words }) => {
      const place = pathText(at);
      if (kind !== 'unknown_key') return `${file}:${yaml.at(at)}: ${place === '' ? words : `${place}: ${words}`}`;
      return `${file}:${yaml.at(at.slice(0, -1), String(at.at(-1)))}: unknown key "${place}"${words}`;
    });
    throw new PersonaFileError(`persona ${told.join('; ')}`);
  }
  const place: PlaceIn = (at) => `${file}:${yaml.at(at)}`;
  return { input: value as PersonaInput, persona: read.data, place, folder: dirname(file) };
}

/** Adds the neighbouring files to a persona's definition: prompt.md of its folder, and its skills. */
async function withItsFiles({ value, at }: LocatedYaml, file: string, folder: string | null): Promise<unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const whole: Record<string, unknown> = { ...value };
  const prompt = folder === null ? null : join(folder, 'prompt.md');
  if (prompt !== null && (await exists(prompt))) {
    if ('prompt' in value)
      throw new PersonaFileError(`persona ${file}:${at([], 'prompt')}: the prompt is given here and in ${prompt}`);
    whole.prompt = await readText(prompt, folder);
  }
  const beside = join(dirname(file), 'skills');
  if (Array.isArray(whole.skills)) {
    const skills: unknown[] = [];
    // An entry that is not a text is an inline skill. The schema rejects other values.
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

/** Reads a skill, by its name in the folder `skills` next to the file, or by a path relative to the file. */
async function skillNamed(named: string, beside: string, place: string): Promise<Skill> {
  const path = /[./\\]/.test(named) ? resolve(dirname(beside), named) : join(beside, named);
  if (!(await isFolder(path))) throw new PersonaFileError(`persona ${place}: there is no folder ${path}`);
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

/** Reads a text. @param folder the folder that must contain the file, after all links; null for any place. */
async function readText(path: string, folder: string | null): Promise<string> {
  try {
    const { bytes, realPath } = await readRegularFile(path, FILE_MAX_BYTES);
    if (folder !== null && !isBelow(await realpath(folder), realPath))
      throw new PersonaFileError(`persona ${path}: is a link; files of a persona must be in its folder`);
    const text = utf8Of(bytes);
    if (text === null) throw new PersonaFileError(`persona ${path}: is not UTF-8`);
    return text;
  } catch (error) {
    if (!(error instanceof UnreadableFileError)) throw error;
    throw new PersonaFileError(`persona ${path}: ${error.message}`, { cause: error });
  }
}

function isBelow(folder: string, path: string): boolean {
  const way = relative(folder, path);
  // On Windows, a path on another drive is absolute.
  return !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch {
    // A missing or inaccessible path is treated as absent.
    return false;
  }
}

async function isFolder(path: string): Promise<boolean> {
  return (await exists(path)) && (await stat(path)).isDirectory();
}
