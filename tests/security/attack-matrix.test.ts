/** Each actor has a test or a reason for each asset, and each linked test exists. */
import { expect, test } from 'vitest';
import { ACTORS, ASSETS, MATRIX } from './attack-matrix.ts';
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
  const links = Object.values(MATRIX).flatMap((row) =>
    Object.values(row).flatMap((cell) => (Array.isArray(cell) ? cell : [])),
  );
  expect([...new Set(links.map(linkProblem))].filter((problem) => problem !== null)).toEqual([]);
});
