/**
 * Skills: instructions for particular kinds of work, with the files that they need. A persona carries its skills whole, so
 * that a session can go on with them on any host; a model is shown their index, and loads what it needs.
 */
import * as z from 'zod';
import { BOUNDS } from '../wire/bounds.ts';

/** What the public convention says of a skill's name; it is its folder's, too. */
export const SKILL_NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;

/** The file that a skill begins with. */
export const SKILL_FILE = 'SKILL.md';
/** The built-in tool that loads a skill. */
export const LOAD_SKILL = 'load_skill';

/** Why a path cannot be one of a file in a skill, or null: relative, with `/`, and never up. */
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
/** See {@link SkillFile}. */
export type SkillFile = z.infer<typeof SkillFile>;

/** One skill, whole. */
export const Skill = z.strictObject({
  name: z
    .string()
    .max(64)
    .regex(SKILL_NAME, { error: 'a skill’s name is 1 to 64 characters of a-z 0-9, in words parted by single hyphens' }),
  /** What it does and when it is to be used: all that a model knows of it before it loads it. */
  description: z
    .string()
    .max(1_024)
    .refine((text) => text.trim() !== '', { error: 'must not be empty' }),
  /** The instructions: the content of SKILL.md after its front matter. */
  body: z.string(),
  files: z.array(SkillFile).max(BOUNDS.skillFilesMax).optional(),
});
/** See {@link Skill}. */
export type Skill = z.infer<typeof Skill>;

/** The skills of a persona: names and paths once each, and no more together than a command can carry. */
export const Skills = z
  .array(Skill)
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

/** What skills take of a command: bodies and files as they are sent, in bytes. */
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

/** What a system prompt says of a persona's skills. Empty where there are none. */
export function skillIndex(skills: readonly Skill[]): string {
  if (skills.length === 0) return '';
  // A description may have several lines; in a list each is one.
  const rows = skills.map(({ name, description }) => `- ${name}: ${description.trim().replaceAll(/\s+/g, ' ')}`);
  return [
    `You have skills: instructions for particular kinds of work. If one fits the task, load it with ${LOAD_SKILL} before you start.`,
    ...rows,
  ].join('\n');
}
