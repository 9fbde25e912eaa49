/** Globs on paths. */
import { expect, test } from 'vitest';
import { pathGlob } from '../src/path-glob.ts';

test.each([
  ['*.ts', 'a.ts', true],
  ['*.ts', 'deep/below/a.ts', true],
  ['*.ts', 'a.tsx', false],
  ['src/*.ts', 'src/a.ts', true],
  ['src/*.ts', 'src/deep/a.ts', false],
  ['src/**', 'src/deep/a.ts', true],
  ['src/', 'src/deep/a.ts', true],
  ['**/*.ts', 'a.ts', true],
  ['**/*.ts', 'x/y/a.ts', true],
  ['src/**/test/*.ts', 'src/test/a.ts', true],
  ['src/**/test/*.ts', 'src/x/y/test/a.ts', true],
  ['src/**/test/*.ts', 'src/x/y/a.ts', false],
  ['**/a/**/a/**', 'a/b/a/c', true],
  ['./src/?.ts', 'src/a.ts', true],
  ['/src/a.ts', 'src/a.ts', true],
  ['*.{ts,tsx}', 'x/a.tsx', true],
  ['{src,test}/**/{a,b}.ts', 'test/x/b.ts', true],
  ['{src,test}/**/{a,b}.ts', 'other/x/b.ts', false],
  ['{a,{b,c}}.ts', 'c.ts', true],
  ['*.{ts', 'a.{ts', true],
])('%s on %s: %s', (glob, path, matches) => {
  expect(pathGlob(glob)(path)).toBe(matches);
});

test('braces that spell out too much are refused', () => {
  expect(() => pathGlob('{a,b}'.repeat(20))).toThrow(/more than 64/);
});

test('many stars are answered', () => {
  expect(pathGlob('**/a/'.repeat(50))('a/'.repeat(500))).toBe(true);
});
