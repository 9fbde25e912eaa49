/** load_skill: what a persona's skills say, and nothing from anywhere else. */
import type { Toolset, ToolsetSpec } from '@coxswain/ports';
import { type JsonObject, type Skill, sessionRef } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { createBuiltInTools, createLoadSkillTool } from '../src/mod.ts';
import { codeOf, freshGround, textOf } from './session-tools.ts';

const SKILLS: readonly Skill[] = [
  {
    name: 'review',
    description: 'How to review.',
    body: 'Look closely.',
    files: [
      { path: 'references/forms.md', text: '# Forms' },
      { path: 'logo.png', base64: Buffer.from('\x89PNG\r\n\x1a\n', 'latin1').toString('base64') },
    ],
  },
  { name: 'write', description: 'How to write.', body: 'Plainly.' },
];

async function opened(skills: readonly Skill[] | undefined = SKILLS, source = createBuiltInTools()) {
  const { root } = await freshGround();
  const spec: ToolsetSpec = { ref: sessionRef('s1'), root, mcpServers: {}, skills };
  const toolset = (await source.open(spec, new AbortController().signal)) as Toolset;
  const head = { idempotencyKey: 'k', ref: spec.ref, callId: 'c', tool: 'load_skill', epoch: 1 };
  const silent = { onProgress: () => {}, onFeedback: () => {} };
  const call = (args: JsonObject) => toolset.call({ ...head, ...silent, args }, new AbortController().signal);
  return { toolset, call };
}

test('it is there only where the persona has skills, with or without the other built-ins', async () => {
  const names = async (skills: readonly Skill[], source = createBuiltInTools()) =>
    (await opened(skills, source)).toolset.tools.map(({ name }) => name);
  expect(await names([])).not.toContain('load_skill');
  expect(await names(SKILLS)).toContain('load_skill');
  expect(await names(SKILLS, createLoadSkillTool())).toEqual(['load_skill']);
  expect(await names([], createLoadSkillTool())).toEqual([]);
});

test('a skill is its instructions, and the list of its files', async () => {
  const { call } = await opened();
  expect(textOf(await call({ name: 'review' }))).toBe(
    'Look closely.\n[Files of this skill, to read with load_skill and file: references/forms.md, logo.png]',
  );
  expect(textOf(await call({ name: 'write', file: 'SKILL.md' }))).toBe('Plainly.');
});

test('its files are read by their paths, text as text, an image as a file', async () => {
  const { call } = await opened();
  expect(textOf(await call({ name: 'review', file: './references/forms.md' }))).toBe('# Forms');
  expect((await call({ name: 'review', file: 'logo.png' })).result.content).toMatchObject([
    { type: 'file', media_type: 'image/png', filename: 'logo.png' },
  ]);
});

describe('what the skill has not is an error that says what it has:', () => {
  test.each<[JsonObject, string]>([
    [{ name: 'reviw' }, 'there is no skill reviw; available: review, write; did you mean review?'],
    [{ name: 'write', file: 'references/forms.md' }, 'the skill write has no file references/forms.md'],
    [{ name: 'review', file: '../../etc/passwd' }, 'the skill review has no file ../../etc/passwd'],
    [{ name: 'review', file: '/etc/passwd' }, 'available: SKILL.md, references/forms.md, logo.png'],
  ])('%j', async (args, message) => {
    const outcome = await (await opened()).call(args);
    expect(outcome.status).toBe('error');
    expect(codeOf(outcome)).toBe('skill_unknown');
    expect(textOf(outcome)).toContain(message);
  });
});
