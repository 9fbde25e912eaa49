import { expect, test } from 'vitest';
import { notFinite, parseCommand } from '../src/mod.ts';

test('a number that is not finite is found by its path, and nothing else is', () => {
  expect(notFinite(JSON.parse('{"a":[0,{"b":1e999}]}'))).toEqual(['a', '1', 'b']);
  expect(notFinite(Number.NaN)).toEqual([]);
  for (const value of [
    null,
    'x',
    1,
    1.7e308,
    -0,
    true,
    [],
    {},
    { a: [1, { b: '1e999' }] },
    { at: new Date(Number.NaN) },
  ])
    expect(notFinite(value)).toBeNull();
});

test('it is found however deep, and what is nested without a ground uses no stack up', () => {
  const deep = (within: string) => JSON.parse(`${'['.repeat(50_000)}${within}${']'.repeat(50_000)}`) as unknown;
  expect(notFinite(deep('1e999'))).toHaveLength(50_000);
  expect(notFinite(deep('1'))).toBeNull();
});

test('a command with one is refused by its name, under its id', () => {
  const payload = new TextEncoder().encode('{"name":"go","id":"c1","data":{"a":1e999}}');
  expect(parseCommand('signal', payload)).toMatchObject({
    ok: false,
    id: 'c1',
    problem: {
      code: 'invalid_field',
      field: 'data.a',
      message: 'data.a: must be a number between -1.8e308 and 1.8e308',
    },
  });
});
