/** The start options of the console on this machine. */
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startOffersOf } from '../src/service/mod.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-offers-'));
});
afterEach(() => rm(folder, { recursive: true }));

test('the options contain the current personas of the folder, also invalid ones with their problem', async () => {
  const offers = startOffersOf({ INIT_CWD: folder, XDG_STATE_HOME: join(folder, 'state') }, null);
  expect(await offers.options()).toEqual({ folder, personas: [], has_demo: false });
  await mkdir(join(folder, 'personas'));
  await writeFile(
    join(folder, 'personas/mate.yaml'),
    'name: mate\nmodel: a/b\nprompt: You help.\ndescription: Helps.\n',
  );
  await writeFile(join(folder, 'personas/torn.yaml'), 'name: torn\nprompts: x\n');
  await writeFile(join(folder, 'personas/wild.yaml'), 'name: wild\npermissions: { default: allow }\n');
  const { personas } = await offers.options();
  expect(personas).toMatchObject([
    { name: 'mate', description: 'Helps.', model: 'a/b', definition: { name: 'mate' }, problem: null },
    { name: 'torn', definition: null, problem: expect.stringContaining('prompts') },
    { name: 'wild', definition: null, problem: expect.stringContaining('folder_not_trusted') },
  ]);
});

test('each demo has its own files, of which only the newest are kept', async () => {
  const { prepareDemo } = startOffersOf({ INIT_CWD: folder }, join(folder, 'demo'));
  const roots = new Set<string>();
  for (let count = 0; count < 10; count++) {
    const { root, model } = (await prepareDemo?.()) ?? { root: '', model: '' };
    expect((await stat(root)).isDirectory()).toBe(true);
    expect((await stat(model.replace('scripted/', ''))).isFile()).toBe(true);
    roots.add(root);
  }
  expect(roots.size).toBe(10);
  expect(await readdir(join(folder, 'demo'))).toHaveLength(8);
});
