import { mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeFolder } from '../src/discovery/make-folder.ts';

let scratch: string;
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'cox-folder-'));
});
afterEach(() => rm(scratch, { recursive: true }));

test('makes what is missing, and is content with what is there', async () => {
  const folder = join(scratch, 'a/b/c');
  await Promise.all([makeFolder(folder), makeFolder(folder)]);
  await makeFolder(folder);
  expect((await stat(folder)).isDirectory()).toBe(true);
});

test('a file in the way is named', async () => {
  await writeFile(join(scratch, 'file'), '');
  const error = { code: 'state_dir_unusable' };
  await expect(makeFolder(join(scratch, 'file'))).rejects.toMatchObject(error);
  await expect(makeFolder(join(scratch, 'file/below'))).rejects.toMatchObject(error);
});

test('a folder that cannot be made is told, not tried for ever', async () => {
  // A link to nowhere answers like the file systems on which a recursive mkdir does not end.
  await symlink(join(scratch, 'nowhere/at/all'), join(scratch, 'link'));
  await expect(makeFolder(join(scratch, 'link'))).rejects.toMatchObject({ code: 'state_dir_unusable' });
});
