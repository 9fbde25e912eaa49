/**
 * Skills: instructions for particular kinds of work, with their files. A persona contains its whole skills, so that a
 * session can continue on any host. The model gets an index of them, and loads a skill on demand.
 */
import * as z from 'zod';
import { BOUNDS } from '../wire/bounds.ts';
import { listOf } from '../wire/containers.ts';

/** The pattern of the public convention for skill names. It also applies to the folder. */
export const SKILL_NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;

/** The main file of a skill. */
export const SKILL_FILE = 'SKILL.md';
/** The built-in tool that loads a skill. */
export const LOAD_SKILL = 'load_skill';

/** Why a path is invalid for a file in a skill, or null. Valid paths are relative, with `/`, and without `..`. */
export function skillPathProblem(path: string): string | null {
  if (path.length > 512) return 'may have at most 512 characters';
  if (/[\\\p{Cc}]/u.test(path)) return 'may have no backslash and no control character';
  const steps = path.split('/');
  if (steps.some((step) => step === '' || step === '.' || step === '..'))
    return 'must be a path inside the skill, as in references/forms.md';
  return null;
}

const SkillPath = z
  .string()
  .min(1)
  .superRefine((path, context) => {
    const problem = skillPathProblem(path);
    if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  });

/** A file of a skill: text unchanged, other content as base64. */
export const SkillFile = z.union([
  z.strictObject({ path: SkillPath, text: z.string() }),
  z.strictObject({ path: SkillPath, base64: z.base64() }),
]);
export type SkillFile = z.infer<typeof SkillFile>;

/** One whole skill. */
export const Skill = z.strictObject({
  name: z
    .string()
    .max(64)
    .regex(SKILL_NAME, { error: 'a skill’s name is 1 to 64 characters of a-z 0-9, in words parted by single hyphens' }),
  /** Purpose and use of the skill: the only text for the model before it loads the skill. */
  description: z
    .string()
    .max(1_024)
    .refine((text) => text.trim() !== '', { error: 'must not be empty' }),
  /** The instructions: the content of SKILL.md after its front matter. */
  body: z.string(),
  files: listOf(SkillFile).max(BOUNDS.skillFilesMax).optional(),
});
export type Skill = z.infer<typeof Skill>;

/** The skills of a persona: unique names and paths, within the size of a command. */
export const Skills = listOf(Skill)
  .max(BOUNDS.skillsMax)
  .superRefine((skills, context) => {
    const refuse = (path: (string | number)[], message: string) => context.addIssue({ code: 'custom', path, message });
    const twice = skills.findIndex(({ name }, index) => skills.findIndex((one) => one.name === name) < index);
    if (twice >= 0) refuse([twice, 'name'], `there are two skills ${skills[twice]?.name}`);
    for (const [index, { name, files = [] }] of skills.entries()) {
      const seen = new Set<string>([SKILL_FILE]);
      const again = files.findIndex(({ path }) => seen.size === seen.add(path).size);
      if (again >= 0) refuse([index, 'files', again, 'path'], `the skill ${name} has this file already`);
    }
    const bytes = skillsBytes(skills);
    if (bytes > BOUNDS.skillsMaxBytes)
      refuse([], `have ${bytes} bytes together; a persona carries at most ${BOUNDS.skillsMaxBytes}`);
  });

/** The size of the bodies and files of skills in a command, in bytes. Binary files count as base64. */
export function skillsBytes(skills: readonly Skill[]): number {
  const encoder = new TextEncoder();
  const bytes = (text: string) => encoder.encode(text).length;
  return skills.reduce(
    (sum, { body, files = [] }) =>
      sum +
      bytes(body) +
      files.reduce((inner, file) => inner + ('text' in file ? bytes(file.text) : file.base64.length), 0),
    0,
  );
}

/** The part of the system prompt about a persona's skills; empty without skills. */
export function skillIndex(skills: readonly Skill[]): string {
  if (skills.length === 0) return '';
  // Joins the lines of a description: each skill is one list item.
  const rows = skills.map(({ name, description }) => `- ${name}: ${description.trim().replaceAll(/\s+/g, ' ')}`);
  return [
    `You have skills: instructions for particular kinds of work. If one fits the task, load it with ${LOAD_SKILL} before you start.`,
    ...rows,
  ].join('\n');
}
