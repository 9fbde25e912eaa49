/** docs/guides/embedding.md: every program of it is run as it stands, by plain Node without conditions, in a project that has `coxswain`. */
import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { REPOSITORY } from './kit/child.ts';
import { cleanEnv } from './kit/clean-env.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';

afterAll(() => removeScratch());

/** What each program prints. */
const PRINTS = ['Ahoy! end_turn\n', 'the model calls pay\nIt is paid.\ntrue\n'];

test('the programs of the guide run, and end', async () => {
  const guide = await readFile(join(REPOSITORY, 'docs/guides/embedding.md'), 'utf8');
  const programs = [...guide.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, program]) => program ?? '');
  expect(programs).toHaveLength(PRINTS.length);

  const folder = await scratchFolder('embedding');
  const env = cleanEnv({ XDG_STATE_HOME: folder, MY_STATE: join(folder, 'state') });
  const node = (...args: string[]) => promisify(execFile)(process.execPath, args, { cwd: folder, env });
  // The command bundles what is older than its source; the bundles of packages are next to it.
  await node(join(REPOSITORY, 'libs/cli/bin/cox.mjs'), '--version');
  await mkdir(join(folder, 'node_modules'));
  await symlink(join(REPOSITORY, 'libs/cli/dist/packages/coxswain'), join(folder, 'node_modules/coxswain'));

  for (const [index, prints] of PRINTS.entries()) {
    const file = join(folder, `program-${index + 1}.mjs`);
    await writeFile(file, programs[index] as string);
    const { stdout, stderr } = await node(file);
    expect(stdout, stderr).toBe(prints);
  }
});
