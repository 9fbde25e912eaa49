/**
 * Personas in code are held to their schema by the compiler. Each line under a `@ts-expect-error` is one that must not
 * compile: `npm run typecheck` fails where it does. What comes from JavaScript is refused when the program runs.
 */
import type { Json } from '@coxswain/protocol';
import { expect, expectTypeOf, test } from 'vitest';
import * as z from 'zod';
import {
  type Client,
  definePersona,
  namedHandlers,
  OutputSchemaError,
  PersonaDefinitionError,
  type PersonaSettings,
  readPersonaDefinition,
} from '../src/mod.ts';

test('a persona is what was given, checked', () => {
  const given = {
    name: 'reviewer',
    model: { name: 'anthropic/claude', providerOptions: { anthropic: { anything: { at: 'all' } } } },
    modes: { strict: { prompt: 'Be strict.' } },
    skills: [{ name: 'review', description: 'How to.', body: 'Look.', files: [{ path: 'a.md', text: '' }] }],
    tools: { allow: ['read_*'] },
    mcpServers: { files: { command: 'npx' }, web: { url: 'https://example.com' } },
    permissions: { rules: [{ tool: '*', when: 'path == "a"', action: 'allow' as const }] },
    limits: { maxTurns: 3 },
    stopWhen: [{ text: 'DONE' }, { tool: 'finish' }],
  };
  expect(definePersona(given)).toBe(given);
});

test('what a hook always returns has the names of TypeScript', () => {
  const hook = (returns: Json) => ({ name: 'a', hooks: [{ event: 'session_start' as const, returns }] });
  const reminder = { body: 'Read AGENTS.md first.', dedupeKey: 'first', ttlTurns: 2 };
  expect(readPersonaDefinition(hook(reminder))).toMatchObject({
    persona: { hooks: [{ returns: { body: reminder.body, dedupe_key: 'first', ttl_turns: 2 } }] },
  });
  expect(() => definePersona(hook({ body: 'x', dedupe_key: 'first' }))).toThrow(
    'hooks[0].returns.dedupe_key is unknown; did you mean dedupeKey?',
  );
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
    'the persona "a": promt is unknown; did you mean prompt?',
  );
  // @ts-expect-error -- it is called maxTurns
  expect(refused(() => definePersona({ name: 'a', limits: { max_turns: 1 } }))).toContain(
    'limits.max_turns is unknown; did you mean maxTurns?',
  );
  const limits = { maxTurns: 1, maxToken: 3 };
  // @ts-expect-error -- also where it is not written in place
  expect(refused(() => definePersona({ name: 'a', limits }))).toContain('limits.maxToken is');
  // @ts-expect-error -- in a list
  expect(refused(() => definePersona({ name: 'a', stopWhen: [{ txt: 'x' }] }))).toContain('stopWhen[0]');
  // @ts-expect-error -- in a record
  expect(refused(() => definePersona({ name: 'a', modes: { b: { prompt: '', model: 'x' } } }))).toContain('modes.b');
  // @ts-expect-error -- a value that cannot stand there
  expect(refused(() => definePersona({ name: 7 }))).toContain('name: must be a text');
  // @ts-expect-error -- nothing
  expect(refused(() => definePersona(undefined))).toContain('the persona: ');
  const loose: PersonaSettings = { name: 'a' };
  expect(definePersona(loose)).toBe(loose);
});

test('handlers of hooks are held to their points, and stand in what is sent by their places', () => {
  const persona = definePersona({
    name: 'guard',
    hooks: [
      { event: 'user_prompt_submit', handler: ({ prompt }) => prompt.length < 100 },
      { event: 'PreToolUse', pattern: 'rm', deny: 'never' },
      { event: 'pre_tool_use', handler: ({ tool }) => ({ args: { name: tool.name } }), priority: -1 },
    ],
    onFinish: ({ stopReason }) => ({ body: `It ended: ${stopReason}.` }),
  });
  expect(JSON.parse(JSON.stringify(persona))).toEqual({
    name: 'guard',
    hooks: [
      { event: 'user_prompt_submit', handler: 'hooks[0]' },
      { event: 'PreToolUse', pattern: 'rm', deny: 'never' },
      { event: 'pre_tool_use', handler: 'hooks[2]', priority: -1 },
    ],
    onFinish: 'onFinish',
  });
  const { definition, handlers } = namedHandlers(persona);
  expect(definition).toBe(persona);
  expect(Object.keys(handlers)).toEqual(['hooks[0]', 'hooks[2]', 'onFinish']);
  const settled = definePersona({ name: 'a', onFinish: { handler: () => true, timeoutMs: 50_000 } });
  expect(settled.onFinish).toEqual({ handler: 'onFinish', timeoutMs: 50_000 });

  // @ts-expect-error -- a veto means nothing there
  definePersona({ name: 'a', hooks: [{ event: 'post_turn', handler: () => ({ block: true }) }] });
  // @ts-expect-error -- no payload of the point has it
  definePersona({ name: 'a', hooks: [{ event: 'post_turn', handler: ({ prompt }) => prompt === '' }] });
  // @ts-expect-error -- it is called reason
  definePersona({ name: 'a', hooks: [{ event: 'user_prompt_submit', handler: () => ({ block: true, reson: '' }) }] });
  // @ts-expect-error -- it is called body
  definePersona({ name: 'a', onFinish: () => ({ bdy: '' }) });
  // @ts-expect-error -- there is no such point
  expect(() => definePersona({ name: 'a', hooks: [{ event: 'post_tun', handler: () => true }] })).toThrow(
    'the persona "a": hooks[0].event: there is no hook point "post_tun"; did you mean PostTurn?',
  );
  // @ts-expect-error -- it is called pattern
  expect(() => definePersona({ name: 'a', hooks: [{ event: 'PreToolUse', pattrn: 'rm', deny: 'no' }] })).toThrow(
    'hooks[0].pattrn is unknown; did you mean pattern?',
  );
});

test('an output schema of Zod is sent as JSON Schema, and types the result', () => {
  const schema = z.object({ total: z.number(), mail: z.email() });
  const persona = definePersona({ name: 'a', output: schema });
  expect(persona.output).toEqual({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    // The pattern of Zod for addresses has lookaround, which RE2 refuses.
    properties: { total: { type: 'number' }, mail: { type: 'string', format: 'email' } },
    required: ['total', 'mail'],
    additionalProperties: false,
  });
  expect(definePersona({ name: 'a', output: { type: 'string' } }).output).toEqual({ type: 'string' });
  expect(() => definePersona({ name: 'a', output: z.object({ at: z.date() }) })).toThrow(OutputSchemaError);
  expect(() => definePersona({ name: 'a', output: { $ref: '#' } })).toThrow('the output schema is recursive');
  // Types only: nothing is started.
  const starting = async (client: Client) => {
    const byPersona = await client.startSession({ prompt: 'x', persona });
    expectTypeOf((await byPersona.result()).output).toEqualTypeOf<{ total: number; mail: string } | undefined>();
    const byStart = await client.startSession({ prompt: 'x', persona, output: z.array(z.string()) });
    expectTypeOf((await byStart.result()).output).toEqualTypeOf<string[] | undefined>();
    const untyped = await client.startSession({ prompt: 'x', persona: { name: 'b' } });
    expectTypeOf((await untyped.result()).output).toEqualTypeOf<Json | undefined>();
  };
  expect(starting).toBeTypeOf('function');
});
