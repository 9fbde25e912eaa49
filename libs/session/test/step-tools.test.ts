/**
 * The tools of a declared step.
 */
import { DEFAULT_TRAITS, HANDOFF, LOAD_SKILL, Persona, type ToolDefinition } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { toolsOfStep } from '../src/effects/select-tools.ts';

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

test('a step can always load skills, and hands off only if its tools include that', () => {
  expect(has('collect')).toEqual(['read_file', LOAD_SKILL]);
  expect(has('pass_on')).toEqual([HANDOFF, LOAD_SKILL]);
});

test('a step without a tool list, and a run without a step, have all tools', () => {
  expect(has('free')).toEqual(has(undefined));
  expect(has(undefined)).toEqual(tools.map(({ name }) => name));
});
