import { expect, test } from 'vitest';
import { parseCommand, unwritableMember } from '../src/mod.ts';

test('a number that is not finite is found by its path, and finite ones are not', () => {
  expect(unwritableMember(JSON.parse('{"a":[0,{"b":1e999}]}'))).toEqual({ path: ['a', '1', 'b'], kind: 'number' });
  expect(unwritableMember(Number.NaN)).toEqual({ path: [], kind: 'number' });
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
    expect(unwritableMember(value)).toBeNull();
});

test('it is found at any depth without overflowing the stack', () => {
  const deep = (within: string) => JSON.parse(`${'['.repeat(50_000)}${within}${']'.repeat(50_000)}`) as unknown;
  expect(unwritableMember(deep('1e999'))?.path).toHaveLength(50_000);
  expect(unwritableMember(deep('1'))).toBeNull();
});

test('a lone surrogate is found by its path, in a text or in a key', () => {
  expect(unwritableMember({ a: [{ b: 'x\ud800' }] })).toEqual({ path: ['a', '0', 'b'], kind: 'text' });
  expect(unwritableMember({ a: { '\udc00': 1 } })).toEqual({ path: ['a', '\udc00'], kind: 'text' });
  expect(unwritableMember('\ude00\ud83d')).toEqual({ path: [], kind: 'text' });
  expect(unwritableMember({ '😀': ['😀'] })).toBeNull();
});

test('a command with a number that is not finite is rejected by name, under its id', () => {
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
