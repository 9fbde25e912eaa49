/**
 * Reads skills: a folder with a SKILL.md, which starts with front matter, and further files. A skill is read
 * completely, because a session may continue on another machine. Links are rejected, so that no file outside the folder
 * is read.
 */
import { lstat, readdir, realpath, stat } from 'node:fs/promises';
import { basename, join, relative, sep } from 'node:path';
import { readLocatedYaml } from '@coxswain/adapter-hooks/located-yaml';
import { readRegularFile, UnreadableFileError } from '@coxswain/ports/regular-file';
import { BOUNDS, problemSentences, readStrictly, SKILL_FILE, Skill, type SkillFile, utf8Of } from '@coxswain/protocol';
import { PersonaFileError } from './persona-file-error.ts';

// Other keys of the format (license, metadata, …) are ignored. A misspelt `name` or `description` is reported as
// missing.
const FrontMatter = Skill.pick({ name: true, description: true });
const FRONT_MATTER = /^---[ \t]*\r?\n([\s\S]*?)^---[ \t]*(?:\r?\n|$)/m;

/**
 * Reads the folder of a skill.
 * @throws PersonaFileError with the file, and for front matter the line and column.
 */
export async function readSkill(folder: string): Promise<Skill> {
  const path = join(folder, SKILL_FILE);
  const root = await realpath(folder).catch(() => null);
  if (root === null || !(await stat(root)).isDirectory())
    throw new PersonaFileError(`${folder}: there is no such folder`);
  const text = await readSkillFile(root, path);
  if (text === null) throw new PersonaFileError(`${path}: a skill needs this file`);
  const { name, description, body } = await parseSkill(path, text);
  if (basename(root) !== name && basename(folder) !== name)
    throw new PersonaFileError(
      `${path}: the name is ${name}, and the folder is called ${basename(folder)}: they must be the same`,
    );
  const files = await filesBeside(root, folder);
  const read = readStrictly(Skill, { name, description, body, ...(files.length > 0 ? { files } : {}) });
  if (!read.ok) throw new PersonaFileError(`${path}: ${problemSentences(read.problems).join('; ')}`);
  return read.data;
}

async function parseSkill(path: string, text: string): Promise<Pick<Skill, 'name' | 'description' | 'body'>> {
  const match = text.startsWith('---') ? FRONT_MATTER.exec(text) : null;
  if (match?.index !== 0)
    throw new PersonaFileError(`${path}:1:1: must begin with front matter: --- name: … description: … ---`);
  const [whole, front = ''] = match;
  const yaml = await readLocatedYaml(front);
  const below = (at: string) => at.replace(/^\d+/, (line) => String(Number(line) + 1));
  if (!yaml.ok) throw new PersonaFileError(`${path}:${below(yaml.at)}: ${yaml.problem}`);
  const { name, description } = (yaml.value ?? {}) as Record<string, unknown>;
  const read = readStrictly(FrontMatter, { name, description });
  if (!read.ok)
    throw new PersonaFileError(
      `${path}:${below(yaml.at(read.problems[0].path))}: ${problemSentences(read.problems)[0]}`,
    );
  return { ...read.data, body: text.slice(whole.length).trim() };
}

/**
 * The files of a skill other than its SKILL.md, sorted by name in each folder. Files whose names start with a dot are
 * ignored.
 */
async function filesBeside(root: string, shown: string): Promise<SkillFile[]> {
  const files: SkillFile[] = [];
  let bytes = 0;
  const walk = async (folder: string, depth: number): Promise<void> => {
    if (depth > DEPTH_MAX) throw new PersonaFileError(`${folder}: a skill has at most ${DEPTH_MAX} nested folders`);
    for (const name of (await readdir(folder)).sort()) {
      const path = join(folder, name);
      if (name.startsWith('.') || path === join(root, SKILL_FILE)) continue;
      const said = join(shown, relative(root, path));
      const real = await realpath(path).catch(() => null);
      if (real === null) throw new PersonaFileError(`${said}: broken link`);
      // A link to a file within the folder would add the file twice, or cause an endless walk.
      if ((await lstat(path)).isSymbolicLink())
        throw new PersonaFileError(`${said}: is a link; files of a skill must be in its folder`);
      const found = await stat(real);
      if (found.isDirectory()) {
        await walk(path, depth + 1);
        continue;
      }
      if (!found.isFile()) throw new PersonaFileError(`${said}: is not a file`);
      if (files.length >= BOUNDS.skillFilesMax)
        throw new PersonaFileError(`${shown}: has more than ${BOUNDS.skillFilesMax} files next to ${SKILL_FILE}`);
      bytes += found.size;
      if (bytes > BOUNDS.skillsMaxBytes)
        throw new PersonaFileError(
          `${said}: with this file the skill has ${bytes} bytes; the limit of a persona is ${BOUNDS.skillsMaxBytes}`,
        );
      files.push(fileOf(relative(root, path).split(sep).join('/'), await bytesOf(path, said)));
    }
  };
  await walk(root, 1);
  return files;
}

const DEPTH_MAX = 16;

function fileOf(path: string, bytes: Buffer): SkillFile {
  const text = bytes.toString('utf8');
  // Bytes that are not valid UTF-8 text are stored as base64.
  return Buffer.from(text, 'utf8').equals(bytes) && !text.includes('\0')
    ? { path, text }
    : { path, base64: bytes.toString('base64') };
}

async function readSkillFile(root: string, path: string): Promise<string | null> {
  const real = await realpath(path).catch(() => null);
  if (real === null) return null;
  if (real !== join(root, SKILL_FILE))
    throw new PersonaFileError(`${path}: is a link; files of a skill must be in its folder`);
  const text = utf8Of(await bytesOf(real, path));
  if (text === null) throw new PersonaFileError(`${path}: is not UTF-8`);
  return text;
}

/**
 * The bytes of a file.
 * @param said the path of the file in error messages.
 * @throws PersonaFileError.
 */
async function bytesOf(path: string, said: string): Promise<Buffer> {
  try {
    return (await readRegularFile(path, BOUNDS.skillsMaxBytes)).bytes;
  } catch (error) {
    if (!(error instanceof UnreadableFileError)) throw error;
    throw new PersonaFileError(`${said}: ${error.message}`, { cause: error });
  }
}
