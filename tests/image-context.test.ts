/** What the image is built from, held without an engine: what `cox` reads beside its bundle comes into it. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const repository = resolve(import.meta.dirname, '..');

/**
 * Whether a file comes into the build's context: the last pattern that matches it, or a folder above it, decides
 * (https://docs.docker.com/build/concepts/context/#dockerignore-files).
 */
function comesAlong(patterns: readonly string[], path: string): boolean {
  const parts = path.split('/');
  const above = parts.map((_, index) => parts.slice(0, index + 1).join('/'));
  return patterns.reduce((kept, pattern) => {
    const negated = pattern.startsWith('!');
    const matches = above.some((one) => asExpression(negated ? pattern.slice(1) : pattern).test(one));
    return matches ? negated : kept;
  }, true);
}

function asExpression(pattern: string): RegExp {
  const source = pattern
    .split(/(\*\*\/|\*\*|\*)/)
    .map((part) =>
      part === '**/'
        ? '(?:.*/)?'
        : part === '**'
          ? '.*'
          : part === '*'
            ? '[^/]*'
            : part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'),
    )
    .join('');
  return new RegExp(`^${source}$`);
}

const patterns = readFileSync(join(repository, '.dockerignore'), 'utf8')
  .split('\n')
  .map((line) => line.trim())
  .filter((line) => line !== '' && !line.startsWith('#'));

test('patterns decide as an engine has them decide', () => {
  const some = ['*', '!libs', '**/test', '!libs/cli/starter', '!scripts/bundle*.mjs'];
  expect(comesAlong(some, 'libs/cli/src/main.ts')).toBe(true);
  expect(comesAlong(some, 'libs/cli/test/help.test.ts')).toBe(false);
  expect(comesAlong(some, 'libs/cli/starter/test/bus.test.mjs')).toBe(true);
  expect(comesAlong(some.slice(0, 3), 'libs/cli/starter/test/bus.test.mjs')).toBe(false);
  expect(comesAlong(some, 'scripts/bundle-cox.mjs')).toBe(true);
  expect(comesAlong(some, 'docs/README.md')).toBe(false);
});

test('every file of the starter comes into the context of the image', () => {
  const files = execFileSync('git', ['ls-files', 'libs/cli/starter'], { cwd: repository, encoding: 'utf8' })
    .split('\n')
    .filter(Boolean);
  expect(files).toContain('libs/cli/starter/test/bus.test.mjs');
  expect(files.filter((file) => !comesAlong(patterns, file))).toEqual([]);
});

test('no test of ours and nothing that is built here does', () => {
  const left = [
    'libs/cli/test/help.test.ts',
    'libs/cli/dist/cox/main.mjs',
    'libs/cli/node_modules/x/index.js',
    'tests/tidy.test.ts',
  ];
  expect(left.filter((file) => comesAlong(patterns, file))).toEqual([]);
});

test('the starter is copied into the image', () => {
  const dockerfile = readFileSync(join(repository, 'Dockerfile'), 'utf8');
  expect(dockerfile).toMatch(/cp -a .*\blibs\/cli\/starter\b.* \/image\/libs\/cli\//);
});
