/**
 * Personas as people write them: a YAML or JSON file, or a folder with persona.yaml, prompt.md and skills. What is wrong is
 * told by file, line and column.
 */
import { readdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
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
/** Problems that are told of one file. */
const TOLD_MAX = 5;

/** Where a path of a definition stands, as `file:line:column`. */
export type PlaceIn = (path: readonly PropertyKey[]) => string;

/** A persona that was read from a file. */
export interface PersonaFile {
  readonly input: PersonaInput;
  readonly persona: Persona;
  readonly place: PlaceIn;
  /** Where relative paths in it begin. */
  readonly folder: string;
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

/** Reads and checks a persona: a file, or a folder with a persona.yaml. @throws PersonaFileError naming the path of what is wrong. */
export async function readPersonaFile(path: string): Promise<PersonaFile> {
  const inFolder = await isFolder(path);
  const file = inFolder ? join(path, 'persona.yaml') : path;
  if (inFolder && !(await exists(file))) throw new PersonaFileError(`persona ${path}: this folder has no persona.yaml`);
  const yaml = await readLocatedYaml(await readText(file));
  if (!yaml.ok) throw new PersonaFileError(`persona ${file}:${yaml.at}: ${yaml.problem}`);
  if (yaml.value === undefined)
    throw new PersonaFileError(`persona ${file}: is empty; a persona needs at least a name`);
  const value = await withItsFiles(yaml, file, inFolder ? path : null);
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

/** The value of a persona's file with what lies beside it: prompt.md of its folder, and skills, whole. */
async function withItsFiles({ value, at }: LocatedYaml, file: string, folder: string | null): Promise<unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const whole: Record<string, unknown> = { ...value };
  const prompt = folder === null ? null : join(folder, 'prompt.md');
  if (prompt !== null && (await exists(prompt))) {
    if ('prompt' in value)
      throw new PersonaFileError(`persona ${file}:${at([], 'prompt')}: the prompt is given here and in ${prompt}`);
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

async function readText(path: string): Promise<string> {
  try {
    const text = utf8Of((await readRegularFile(path, FILE_MAX_BYTES)).bytes);
    if (text === null) throw new PersonaFileError(`persona ${path}: is not UTF-8`);
    return text;
  } catch (error) {
    if (!(error instanceof UnreadableFileError)) throw error;
    throw new PersonaFileError(`persona ${path}: ${error.message}`, { cause: error });
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
