/** Each actor has a test or a reason for each asset, and each linked test exists. The guide has a row for each role. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { REPOSITORY } from '../e2e/kit/child.ts';
import { ACTORS, ASSETS, FINDINGS, MATRIX } from './attack-matrix.ts';
import { linkProblem } from './linked-tests.ts';

test('each role, each scope and each other actor has a row, and each row an entry for each asset', () => {
  expect(Object.keys(MATRIX).sort()).toEqual([...ACTORS].sort());
  for (const [actor, row] of Object.entries(MATRIX)) {
    expect(Object.keys(row).sort(), actor).toEqual([...ASSETS].sort());
    for (const [asset, cell] of Object.entries(row)) expect(cell.length, `${actor}, ${asset}`).toBeGreaterThan(0);
  }
});

test('a link to a file or a title that does not exist is seen', () => {
  expect(linkProblem({ file: 'tests/nowhere.test.ts', title: 'x' })).toContain('no such file');
  expect(linkProblem({ file: 'tests/security/attack-matrix.test.ts', title: 'x' })).toContain('no test "x"');
});

test('each linked test exists', () => {
  const cells = Object.values(MATRIX).flatMap((row) => Object.values(row));
  const links = [...cells, ...Object.values(FINDINGS)].flatMap((cell) => (typeof cell === 'string' ? [] : cell));
  expect([...new Set(links.map(linkProblem))].filter((problem) => problem !== null)).toEqual([]);
});

describe('the guide', () => {
  const guide = readFileSync(join(REPOSITORY, 'docs/guides/security.md'), 'utf8');
  const rows = guide.split('\n').filter((line) => line.startsWith('| ') && line.includes('.test.ts "'));
  const linksIn = (row: string) =>
    [...row.matchAll(/\]\(\.\.\/\.\.\/([^ )]+) "([^"]+)"\)/g)].map(([, file = '', title = '']) => ({ file, title }));

  test('says of each role and each scope what it cannot do', () => {
    const subjects = rows.map((row) => row.split('|')[1]?.trim() ?? '');
    const roles = ACTORS.filter((actor) => actor.startsWith('role ')).map((actor) => `\`${actor.slice(5)}\``);
    const scopes = ACTORS.filter((actor) => actor.startsWith('scope ')).map((actor) => `scope \`${actor.slice(6)}\``);
    expect(subjects).toEqual(expect.arrayContaining([...roles, ...scopes, 'no key']));
  });

  test('links a test that exists in each of these rows', () => {
    for (const row of rows) expect(linksIn(row).length, row).toBeGreaterThan(0);
    expect(
      rows
        .flatMap(linksIn)
        .map(linkProblem)
        .filter((problem) => problem !== null),
    ).toEqual([]);
  });
});
