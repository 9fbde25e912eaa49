import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { FAULTS } from './faults.ts';

test('every planted fault has its own name and an existing test file', () => {
  const names = FAULTS.map(({ name }) => name);
  expect(names.filter((name, place) => names.indexOf(name) !== place)).toEqual([]);
  const missing = FAULTS.filter(({ testFile }) => !existsSync(resolve(import.meta.dirname, '../..', testFile)));
  expect(missing).toEqual([]);
});
