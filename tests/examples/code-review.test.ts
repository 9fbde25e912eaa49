/** The code-review crew, as its README tells it; what it says of denials and of what cannot be reviewed. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { removeScratch } from '../e2e/kit/scratch.ts';
import { Walkthrough } from './walkthrough.ts';

afterAll(removeScratch);

describe('code review', () => {
  test('two reviewers side by side, and an editor whose edits are decided from another terminal', async () => {
    const readme = await Walkthrough.of('code-review', 'crews');
    expect(await (await readme.next()).end()).toBe(6);
    for (const _ of ['what waits', 'the edits', 'the tests']) await readme.next();
    expect(await (await readme.next()).end()).toBe(0);
    readme.expectEnd();
    const bills = await readFile(join(readme.folder, 'work/harbour-fees/bills.js'), 'utf8');
    expect(bills).toContain('that is no name of a ship');
  });

  test('edits that are denied are not made, and the report says so', async () => {
    const readme = await Walkthrough.of('code-review', 'crews');
    const { code, output } = await readme.type('./run.sh --on-ask deny');
    expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining('You have\ndecided against edits') });
    expect(await readme.type('git -C work/harbour-fees status --short')).toEqual({ code: 0, output: '' });
  });

  test.each([
    ['a folder that is no repository', '--root personas', 'script.yaml', 0, 'This folder is no git repository'],
    ['a folder that is not there', '--root nowhere', 'script.yaml', 2, 'is not a folder'],
    ['a model without its key', '--root .', 'anthropic/claude-sonnet-4-5', 2, 'set ANTHROPIC_API_KEY'],
    ['a crew that is not there', '--root . --crew nobody', 'script.yaml', 2, 'nobody.yaml'],
  ])('%s is told', async (_what, flags, model, code, says) => {
    const readme = await Walkthrough.of('code-review', 'crews');
    const named = model.includes('/') ? model : `scripted/${model}`;
    const run = await readme.type(
      `npx cox run "Review the last commit" --persona personas/planner.yaml ${flags} --model ${named}`,
    );
    expect({ ...run, code: run.code }).toEqual({ code, output: expect.stringContaining(says) });
  });
});
