/** What a release writes, and in which order it publishes. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { VERSION } from '@coxswain/protocol/version';
import { expect, test } from 'vitest';
import { inOrder, publishArguments } from '../scripts/release/publish-missing.ts';
import { changelogSection, VERSIONED_FILES, withSection, withVersion } from '../scripts/version-packages.ts';

test('image, bake file, compose file and code have the same version', () => {
  for (const [path, around] of Object.entries(VERSIONED_FILES)) {
    const text = readFileSync(join(resolve(import.meta.dirname, '..'), path), 'utf8');
    expect(withVersion(text, around, VERSION, '9.8.7'), path).toContain(around.replace('%', '9.8.7'));
  }
  expect(() => withVersion('VERSION=0.0.1', 'VERSION=%', '0.1.0', '0.2.0')).toThrow('no "VERSION=0.1.0" in the text');
});

test('changesets become the newest section of the changelog, by heading', () => {
  const section = changelogSection('0.2.0', '2027-01-31', [
    'Fixed: `cox ls` ends\n  at once.',
    'Added: one thing.',
    'Fixed: another.',
  ]);
  expect(withSection('# Changelog\n\nAll.\n\n## [0.1.0] - 2027-01-01\n', section)).toBe(`# Changelog

All.

## [0.2.0] - 2027-01-31

### Added

- one thing.

### Fixed

- \`cox ls\` ends at once.
- another.

## [0.1.0] - 2027-01-01
`);
  expect(() => changelogSection('0.2.0', '2027-01-31', ['improves things'])).toThrow(
    'a changeset starts with Added: or Changed:',
  );
});

test('a package is published after those that it depends on', () => {
  const named = (name: string, dependencies = {}, optionalDependencies = {}) => ({
    manifest: { name, version: '0.1.0', dependencies, optionalDependencies },
  });
  const packages = [
    named('create', { app: '0.1.0' }),
    named('app', { client: '0.1.0', zod: '4.0.0' }, { server: '2.0.0' }),
  ];
  const order = inOrder([...packages, named('client'), named('server')]).map(({ manifest: { name } }) => name);
  expect(order).toEqual(['client', 'server', 'app', 'create']);
  expect(() => inOrder([named('a', { b: '1.0.0' }), named('b', { a: '1.0.0' })])).toThrow('a, b depend on each other');
});

test('a pre-release is published as next, and not as latest', () => {
  expect(publishArguments('a.tgz', '1.2.3-rc.1').slice(-2)).toEqual(['--tag', 'next']);
  expect(publishArguments('a.tgz', '1.2.3')).not.toContain('--tag');
});
