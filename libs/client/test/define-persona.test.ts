/**
 * Personas in code are held to their schema by the compiler. Each line under a `@ts-expect-error` is one that must not
 * compile: `npm run typecheck` fails where it does. What comes from JavaScript is refused when the program runs.
 */
import type { PersonaInput } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { definePersona, PersonaDefinitionError } from '../src/mod.ts';

test('a persona is what was given, checked', () => {
  const given = {
    name: 'reviewer',
    model: { name: 'anthropic/claude', provider_options: { anthropic: { anything: { at: 'all' } } } },
    modes: { strict: { prompt: 'Be strict.' } },
    skills: [{ name: 'review', description: 'How to.', body: 'Look.', files: [{ path: 'a.md', text: '' }] }],
    tools: { allow: ['read_*'] },
    mcp_servers: { files: { command: 'npx' }, web: { url: 'https://example.com' } },
    permissions: { rules: [{ tool: '*', when: 'path == "a"', action: 'allow' as const }] },
    limits: { max_turns: 3 },
    stop_when: [{ text: 'DONE' }, { tool: 'finish' }],
  };
  expect(definePersona(given)).toBe(given);
});

test('a key that there is not does not compile, at any depth, and is refused when it runs', () => {
  const refused = (define: () => unknown): string => {
    try {
      define();
    } catch (error) {
      expect(error).toBeInstanceOf(PersonaDefinitionError);
      expect(error).toMatchObject({ code: 'persona_invalid' });
      return (error as Error).message;
    }
    throw new Error('it was taken');
  };
  // @ts-expect-error -- it is called prompt
  expect(refused(() => definePersona({ name: 'a', promt: 'x' }))).toBe(
    'the persona "a": unknown key "promt"; did you mean "prompt"?',
  );
  // @ts-expect-error -- it is called max_turns
  expect(refused(() => definePersona({ name: 'a', limits: { max_turn: 1 } }))).toContain('"limits.max_turn"');
  const limits = { max_turns: 1, max_token: 3 };
  // @ts-expect-error -- also where it is not written in place
  expect(refused(() => definePersona({ name: 'a', limits }))).toContain('"limits.max_token"');
  // @ts-expect-error -- in a list
  expect(refused(() => definePersona({ name: 'a', stop_when: [{ txt: 'x' }] }))).toContain('stop_when[0]');
  // @ts-expect-error -- in a record
  expect(refused(() => definePersona({ name: 'a', modes: { b: { prompt: '', model: 'x' } } }))).toContain('modes.b');
  // @ts-expect-error -- a value that cannot stand there
  expect(refused(() => definePersona({ name: 7 }))).toContain('name: must be a text');
  // @ts-expect-error -- nothing
  expect(refused(() => definePersona(undefined))).toContain('the persona: ');
  const loose: PersonaInput = { name: 'a' };
  expect(definePersona(loose)).toBe(loose);
});
