/** What `npm run version-packages` writes, and where. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { VERSION } from '@coxswain/protocol/version';
import { expect, test } from 'vitest';
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
