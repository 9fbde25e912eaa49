/** The troubleshooting page has a row for every state in which a session waits, as `cox session show` prints it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { turnMachine } from '@coxswain/turn';
import { expect, test } from 'vitest';
import { REPOSITORY } from '../e2e/kit/child.ts';

test('every wait state has a row', () => {
  const page = readFileSync(join(REPOSITORY, 'docs/guides/troubleshooting.md'), 'utf8');
  const waits = Object.values(turnMachine.root.states).flatMap((top) =>
    Object.values(top.states)
      .filter(({ tags }) => tags.includes('wait'))
      .map((state) => `${top.key} / ${state.key}`),
  );
  expect(waits.length).toBeGreaterThan(30);
  expect(waits.filter((state) => !page.includes(`\`${state}\``))).toEqual([]);
});
