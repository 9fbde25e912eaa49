import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PLANTED_FAULTS, sourceOf } from './planted-faults.ts';

const repository = resolve(import.meta.dirname, '../..');

describe('a planted fault fits its source:', () => {
  test.each(PLANTED_FAULTS)('$name', (fault) => {
    const pieces = readFileSync(resolve(repository, sourceOf(fault)), 'utf8').split(fault.find);
    expect(pieces).toHaveLength(2);
    expect(fault.instead).not.toBe(fault.find);
  });
});

test('each fault has a name of its own, by which one can plant it alone', () => {
  const names = PLANTED_FAULTS.map(({ name }) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});

test('the list of who caught what names each of them', () => {
  const list = readFileSync(resolve(import.meta.dirname, 'README.md'), 'utf8');
  const unlisted = PLANTED_FAULTS.filter((fault) => !list.includes(`| ${fault.name} | \`${sourceOf(fault)}\` |`));
  expect(unlisted.map(({ name }) => name)).toEqual([]);
  expect(list).not.toContain('**nothing**');
});
