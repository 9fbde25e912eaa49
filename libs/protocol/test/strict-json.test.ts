import { describe, expect, test } from 'vitest';
import { parseCommand } from '../src/commands/commands.ts';
import { parseCallOutcome } from '../src/commands/internal-commands.ts';
import { parseStrictJson } from '../src/wire/strict-json.ts';

describe('a repeated member is rejected by its path:', () => {
  test.each([
    ['{"a":1,"a":1}', 'a'],
    ['{"a":{"b":[{"c":1},{"d":2, "d" :3}]}}', 'a.b.[].d'],
    ['{"mode":"steer","m\\u006fde":"interrupt"}', 'mode'],
    ['{"__proto__":1,"__proto__":2}', '__proto__'],
    ['{"":1,\n\t"":2}', ''],
    ['{"a\\"":1,"b":"\\\\","a\\"":2}', 'a"'],
    [`{"${'n'.repeat(200)}":1,"${'n'.repeat(200)}":2}`, 'n'.repeat(128)],
  ])('%s', (text, path) => {
    expect(() => JSON.parse(text)).not.toThrow();
    expect(parseStrictJson(text)).toEqual({ ok: false, why: `the member ${JSON.stringify(path)} is repeated` });
  });
});

test.each([
  '{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}],"d":"a","e":["a","a"]}',
  '{"a":"\\"a\\":1,{[","b":"\\\\"}',
  '["a", "a"]',
  '"a"',
  ' 5 ',
  '{"constructor":1,"__proto__":{"a":1}}',
])('%s is parsed as by JSON.parse', (text) => {
  expect(parseStrictJson(text)).toEqual({ ok: true, value: JSON.parse(text) });
});

test('invalid JSON is rejected with the parser’s message, at any nesting', () => {
  expect(parseStrictJson('{"a":1,"a":')).toMatchObject({ ok: false });
  const depth = 100_000;
  expect(parseStrictJson('['.repeat(depth) + ']'.repeat(depth)).ok).toBe(true);
});

test.each([
  ['of a client', (text: string) => parseCommand('steer', Buffer.from(text))],
  ['of a worker', (text: string) => parseCallOutcome(Buffer.from(text))],
])('a command %s with a repeated member is rejected: two readers could see two commands', (_, parse) => {
  expect(parse('{"body":"stop","body":"go on"}')).toMatchObject({
    ok: false,
    problem: { code: 'invalid_json', message: expect.stringContaining('"body" is repeated'), field: 'body' },
  });
});
