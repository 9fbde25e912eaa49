/**
 * Problems of invalid values as sentences: unknown keys first, each with its path.
 */
import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import {
  Json,
  McpServers,
  PermissionRule,
  Persona,
  problemSentences,
  readStrictly,
  StopCondition,
  UserMessage,
} from '../src/mod.ts';
import { listOf, mapOf } from '../src/wire/containers.ts';

/** The problems of a value, as sentences. */
function problems(schema: z.ZodType, value: unknown): string[] {
  const read = readStrictly(schema, value);
  return read.ok ? [] : problemSentences(read.problems);
}

test('a valid value is returned as the schema parses it', () => {
  expect(readStrictly(Persona, { name: 'a', model: 'openai/x' })).toMatchObject({
    ok: true,
    data: { model: { name: 'openai/x' } },
  });
});

describe('a name that a schema would drop silently', () => {
  test('is rejected with its path', () => {
    const value = JSON.parse('{"servers": [{"a": {"command": "x"}}, {"__proto__": {"command": "y"}}]}');
    expect(problems(z.strictObject({ servers: z.array(McpServers) }), value)).toEqual([
      'servers[1].__proto__: this name is not allowed here',
    ]);
  });

  test('is accepted in free JSON', () => {
    const value = JSON.parse('{"any": {"__proto__": {"__proto__": 1}}}');
    expect(problems(z.strictObject({ any: Json }), value)).toEqual([]);
  });
});

describe('an unknown key', () => {
  test('is reported before the missing one that it causes', () => {
    expect(problems(PermissionRule, { tol: 'x', action: 'ask' })).toEqual([
      'unknown key "tol"; did you mean "tool"?',
      'tool: is missing',
    ]);
  });

  test('is reported without a suggestion if none is similar', () => {
    expect(problems(PermissionRule, { tool: 'x', action: 'ask', colour: 1 })).toEqual(['unknown key "colour"']);
  });

  test('is compared with every alternative that might have it', () => {
    expect(problems(z.array(StopCondition), [{ txt: 'a' }])).toEqual(['unknown key "[0].txt"; did you mean "text"?']);
    expect(problems(McpServers, { a: { comand: 'x' } })).toEqual(['unknown key "a.comand"; did you mean "command"?']);
  });

  test('of another alternative is reported as an invalid combination', () => {
    expect(problems(z.array(StopCondition), [{ tool: 'x', text: 'y' }])).toEqual([
      '[0]: these keys do not go together: tool, text',
    ]);
    expect(problems(McpServers, { a: { command: 'x', url: 'http://x' } })).toEqual([
      'a: these keys do not go together: command, url',
    ]);
  });
});

describe('for a union, the intended alternative is reported:', () => {
  test.each<[string, z.ZodType, unknown, string[]]>([
    ['by the kind of value', Persona.shape.model, { nam: 'a/b' }, ['unknown key "nam"; did you mean "name"?']],
    [
      'by its keys',
      McpServers,
      { a: { url: 'nowhere' } },
      ['a.url: must be an address that begins with http:// or https://'],
    ],
    ['none, where keys are missing', McpServers, { a: {} }, ['a: needs one of command, url']],
    [
      'none, where it is another kind',
      Persona.shape.tools,
      'read_file',
      ['must be a list or an object with allow, deny, not a text'],
    ],
    [
      'by the word that tells them apart',
      UserMessage.shape.content,
      [{ type: 'image' }],
      ['[0].type: must be one of text, file'],
    ],
    [
      'by a word that is not there',
      UserMessage.shape.content,
      [{ text: 'x' }],
      ['[0].type: is missing; it is one of text, file'],
    ],
  ])('%s', (_how, schema, value, expected) => {
    expect(problems(schema, value)).toEqual(expected);
  });
});

describe('an invalid value', () => {
  const text = z.string().min(1).max(3);
  const list = z.array(z.number()).min(1).max(2);
  test.each<[z.ZodType, unknown, string]>([
    [text, '', 'must not be empty'],
    [text, 'abcd', 'may have at most 3 characters'],
    [z.string().min(2), 'a', 'needs at least 2 characters'],
    [z.string().regex(/^a+$/), 'b', 'must fit /^a+$/'],
    [text, 5, 'must be a text, not a number'],
    [text, null, 'must be a text, not null'],
    [list, [], 'needs at least one entry'],
    [list, [1, 2, 3], 'may have at most 2 entries'],
    [list, 'x', 'must be a list, not a text'],
    [z.number().min(2), 1, 'must be at least 2'],
    [z.number().max(2), 3, 'must be at most 2'],
    [z.number().positive(), 0, 'must be more than 0'],
    [z.number().int(), 1.5, 'must be a whole number, not 1.5'],
    [z.boolean(), 'yes', 'must be true or false, not a text'],
    [z.enum(['allow', 'deny']), 'maybe', 'must be one of allow, deny'],
    [z.literal(false), true, 'must be false'],
    [z.strictObject({ a: text }), [], 'must be an object with a, not a list'],
    [z.strictObject({ a: text }), {}, 'a: is missing'],
    [z.strictObject({ a: z.enum(['x', 'y']) }), {}, 'a: is missing; it is one of x, y'],
    [z.record(z.string().regex(/^a+$/), text), { b: 'x' }, 'b: this name must fit /^a+$/'],
    [z.string().refine(() => false, { error: 'is not to my taste' }), 'x', 'is not to my taste'],
  ])('%#: %j', (schema, value, expected) => {
    expect(problems(schema, value)).toEqual([expected]);
  });

  test('is reported with its path, up to a number of problems', () => {
    const values = Array(9).fill({ n: 'x' });
    expect(problems(z.array(z.strictObject({ n: z.number() })), values)).toEqual(
      [0, 1, 2, 3, 4].map((index) => `[${index}].n: must be a number, not a text`),
    );
  });
});

test.each<[string, z.ZodType, (many: object) => unknown]>([
  ['an object', PermissionRule, (many) => ({ tool: 'x', action: 'ask', ...many })],
  ['an alternative', McpServers, (many) => ({ a: { command: 'x', ...many } })],
  ['no alternative', z.union([z.string(), z.strictObject({ name: z.string() })]), (many) => many],
  ['several objects', z.array(PermissionRule), (many) => Object.keys(many)],
])('of tens of thousands of problems, the first are described: %s', (_what, schema, build) => {
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`key${index}`, 1]));
  const read = readStrictly(schema, build(many));
  expect(read.ok ? [] : read.problems).toHaveLength(16);
  expect(problems(schema, build(many))).toHaveLength(5);
});

test('an unknown key is also described after more problems than are described', () => {
  const rules = Array.from({ length: 40 }, () => ({ tool: 1, action: 'ask' }));
  expect(problems(z.strictObject({ rules: z.array(PermissionRule) }), { rules, rule: 1 })[0]).toBe(
    'unknown key "rule"; did you mean "rules"?',
  );
});

describe('members of a list or map', () => {
  const many = 20_000;
  const list = Array.from({ length: many }, (_, index) => index);
  const map = Object.fromEntries(list.map((index) => [`key${index}`, index]));
  /** A schema of numbers below a limit, and the number of values that it has read. */
  const below = (limit: number) => {
    const read = { count: 0 };
    const schema = z.number().superRefine((value, context) => {
      read.count += 1;
      if (value >= limit) context.addIssue({ code: 'custom', message: 'is too large' });
    });
    return { read, schema };
  };

  test('are not read after 16 problems, and no rule sees the rest', () => {
    const { read, schema } = below(100);
    const rule = vi.fn(() => true);
    const body = z.strictObject({ list: listOf(schema).refine(rule) }).refine(rule);
    const { error } = body.safeParse({ list });
    expect(error?.issues).toHaveLength(16);
    expect(error?.issues[0]?.path).toEqual(['list', 100]);
    expect(read.count).toBe(116);
    expect(rule).not.toHaveBeenCalled();
  });

  test('of a map are not read after 16 problems and their part of the map', () => {
    const { read, schema } = below(100);
    const { error } = mapOf(z.string(), schema).safeParse(map);
    expect(error?.issues[0]?.path).toEqual(['key100']);
    expect(error?.issues.length).toBeLessThan(32);
    expect(read.count).toBeLessThan(140);
  });

  test('are not read if there are too many', () => {
    const { read, schema } = below(100);
    const both = z.strictObject({ list: listOf(schema).min(1).max(64), map: mapOf(z.string(), schema, 64) });
    expect(problems(both, { list, map })).toEqual([
      'list: may have at most 64 entries',
      'map: may have at most 64 entries',
    ]);
    expect(read.count).toBe(0);
  });

  test('are all read otherwise, in order', () => {
    const { schema } = below(many);
    expect(readStrictly(listOf(schema), list)).toEqual({ ok: true, data: list });
    const read = readStrictly(mapOf(z.string(), schema), map);
    expect(JSON.stringify(read.ok && read.data)).toBe(JSON.stringify(map));
  });

  test('of a map are described in its JSON Schema', () => {
    expect(z.toJSONSchema(mapOf(z.string(), z.number(), 64))).toMatchObject({
      maxProperties: 64,
      additionalProperties: { type: 'number' },
    });
  });
});
