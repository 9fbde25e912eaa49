import type { ToolOutcome, ToolSource } from '@coxswain/ports';
import {
  binaryMediaType,
  DEFAULT_TRAITS,
  LOAD_SKILL,
  nearestWord,
  SKILL_FILE,
  type Skill,
  type SkillFile,
} from '@coxswain/protocol';
import { type FunctionTool, functionToolset } from './function-toolset.ts';
import { inputSchema, type Parameters, readArguments } from './parameters.ts';
import { succeeded } from './tool-outcome.ts';
import { ToolProblem } from './tool-problem.ts';

const parameters = {
  name: { type: 'string', description: 'The name of the skill.', minLength: 1, maxLength: 64 },
  file: {
    type: 'string',
    description: `The path of a file of the skill, as the skill lists it. Default: ${SKILL_FILE}, its instructions.`,
    minLength: 1,
    maxLength: 512,
    optional: true,
  },
} as const satisfies Parameters;

/**
 * The tool `load_skill`: returns the instructions of a skill, or one of its files. It reads them from the persona's
 * definition, not from disk.
 */
export function loadSkillTool(skills: readonly Skill[]): FunctionTool {
  return {
    definition: {
      name: LOAD_SKILL,
      description:
        'Loads one of your skills: its instructions and the list of its files. Set file to read one of these files. ' +
        `Your skills: ${skills.map(({ name }) => name).join(', ')}.`,
      input_schema: inputSchema(parameters),
      source: 'built_in',
      traits: { ...DEFAULT_TRAITS, idempotent: true },
    },
    async run(args) {
      const { name, file = SKILL_FILE } = readArguments(parameters, args);
      const skill = skills.find((one) => one.name === name);
      if (!skill)
        throw unknown(
          `there is no skill ${name}`,
          name,
          skills.map((one) => one.name),
        );
      return file === SKILL_FILE ? instructions(skill) : fileOf(skill, file);
    },
  };
}

/** Creates only the tool `load_skill`, for programs whose sessions have no other built-in tools. */
export function createLoadSkillTool(): ToolSource {
  return { open: async ({ skills = [] }) => functionToolset(skills.length > 0 ? [loadSkillTool(skills)] : []) };
}

function instructions({ body, files = [] }: Skill): ToolOutcome {
  const list = files.map(({ path }) => path).join(', ');
  const note = `[Files of this skill, to read with ${LOAD_SKILL} and file: ${list}]`;
  return succeeded(body.trim() === '' ? '(This skill has no instructions.)' : body, files.length > 0 ? [note] : []);
}

function fileOf({ name, files = [] }: Skill, path: string): ToolOutcome {
  // Only files that the skill lists can be read, so a path cannot lead anywhere else.
  const file = files.find((one) => one.path === path.replace(/^\.\//, ''));
  if (!file)
    throw unknown(`the skill ${name} has no file ${path}`, path, [SKILL_FILE, ...files.map((one) => one.path)]);
  return 'text' in file ? succeeded(file.text) : binary(file);
}

function binary({ path, base64 }: Extract<SkillFile, { base64: string }>): ToolOutcome {
  const media_type = binaryMediaType(Buffer.from(base64, 'base64')) ?? 'application/octet-stream';
  const filename = path.slice(path.lastIndexOf('/') + 1);
  return {
    status: 'ok',
    result: { content: [{ type: 'file', media_type, filename, data: base64 }], is_error: false },
  };
}

function unknown(what: string, asked: string, there: readonly string[]): ToolProblem {
  const meant = nearestWord(asked, there);
  const hint = meant === null ? '' : `; did you mean ${meant}?`;
  return new ToolProblem('skill_unknown', `${what}; available: ${there.join(', ')}${hint}`);
}
