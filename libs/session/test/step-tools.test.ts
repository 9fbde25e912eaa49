/** Which tools of a session a declared step has. */
import { DEFAULT_TRAITS, HANDOFF, LOAD_SKILL, Persona, type ToolDefinition } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { toolsOfStep } from '../src/effects/provision-session.ts';

const tools = ['read_file', 'write_file', HANDOFF, LOAD_SKILL].map(
  (name): ToolDefinition => ({ name, description: name, input_schema: {}, source: 'built_in', traits: DEFAULT_TRAITS }),
);
const persona = Persona.parse({
  name: 'writer',
  handoffs: ['reviewer'],
  skills: [{ name: 'notes', description: 'How to write notes.', body: 'Write.' }],
  steps: [
    { name: 'collect', prompt: 'Read.', tools: ['read_file'] },
    { name: 'pass_on', prompt: 'Hand off.', tools: [HANDOFF] },
    { name: 'free', prompt: 'Work.' },
  ],
});
const has = (step: string | undefined) => toolsOfStep(tools, persona, step).map(({ name }) => name);

test('a step loads skills in any case, and hands off only where its tools say so', () => {
  expect(has('collect')).toEqual(['read_file', LOAD_SKILL]);
  expect(has('pass_on')).toEqual([HANDOFF, LOAD_SKILL]);
});

test('a step that says nothing of tools, and a run without one, have all of them', () => {
  expect(has('free')).toEqual(has(undefined));
  expect(has(undefined)).toEqual(tools.map(({ name }) => name));
});
