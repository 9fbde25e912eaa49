/** The root cannot be left: every kind of way out, by every tool that takes a path. */
import { constants as fs } from 'node:fs';
import { link, mkdir, readdir, readFile, realpath, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type JsonObject, OPEN_RULES } from '@coxswain/protocol';
import { describe, expect, test, vi } from 'vitest';
import type { Anchoring } from '../src/open-folder.ts';
import { replaceFile } from '../src/replace-file.ts';
import { RootFolder } from '../src/root-folder.ts';
import { builtIns, codeOf, freshGround, type Ground, textOf } from './session-tools.ts';

vi.setConfig({ testTimeout: 60_000 });

const SECRET = 'the secret outside';

/** A way out: prepares the ground and names the path that should lead to `outside/secret.txt` or into `outside`. */
const WAYS_OUT: Readonly<Record<string, (ground: Ground) => Promise<string> | string>> = {
  'dot-dot': () => '../outside/secret.txt',
  'dot-dot behind a folder': async ({ root }) => {
    await mkdir(join(root, 'folder'));
    return 'folder/../../outside/secret.txt';
  },
  'dot-dot to something that is not there': () => '../nothing/at/all.txt',
  'many dot-dots': () => `${'../'.repeat(40)}etc/passwd`,
  'an absolute path': ({ outside }) => join(outside, 'secret.txt'),
  'an absolute path to nothing': () => '/no/such/file',
  'the folder above': () => '..',
  'a neighbour whose name begins like the root': async ({ root }) => {
    await mkdir(`${root}-neighbour`);
    await writeFile(`${root}-neighbour/secret.txt`, SECRET);
    return `../${basename(root)}-neighbour/secret.txt`;
  },
  'a NUL byte': () => 'file.txt\0.png',
  'a NUL byte behind dot-dot': () => '../outside/secret.txt\0',
  'a link to a file': async ({ root, outside }) => {
    await symlink(join(outside, 'secret.txt'), join(root, 'link.txt'));
    return 'link.txt';
  },
  'a relative link to a file': async ({ root }) => {
    await symlink('../outside/secret.txt', join(root, 'link.txt'));
    return 'link.txt';
  },
  'a link to a folder': async ({ root, outside }) => {
    await symlink(outside, join(root, 'link'));
    return 'link/secret.txt';
  },
  'a link to a folder, for something that is not there': async ({ root, outside }) => {
    await symlink(outside, join(root, 'link'));
    return 'link/new/deep/file.txt';
  },
  'a link to a link': async ({ root, outside }) => {
    await symlink(outside, join(root, 'second'));
    await symlink('second', join(root, 'first'));
    return 'first/secret.txt';
  },
  'a link deep inside': async ({ root, outside }) => {
    await mkdir(join(root, 'a/b'), { recursive: true });
    await symlink(outside, join(root, 'a/b/c'));
    return 'a/b/c/secret.txt';
  },
  'a link to the folder above': async ({ root }) => {
    await symlink('..', join(root, 'up'));
    return 'up/outside/secret.txt';
  },
  'a dangling link to a file': async ({ root, outside }) => {
    await symlink(join(outside, 'new.txt'), join(root, 'dangling.txt'));
    return 'dangling.txt';
  },
  'a dangling link to a folder': async ({ root, outside }) => {
    await symlink(join(outside, 'new'), join(root, 'dangling'));
    return 'dangling/file.txt';
  },
  'a dangling link that would lie inside': async ({ root }) => {
    await symlink('nowhere.txt', join(root, 'dangling.txt'));
    return 'dangling.txt';
  },
  'links in a circle': async ({ root }) => {
    await symlink('second', join(root, 'first'));
    await symlink('first', join(root, 'second'));
    return 'first';
  },
  'a link to /proc/self/root': async ({ root, outside }) => {
    await symlink('/proc/self/root', join(root, 'proc'));
    return `proc${outside}/secret.txt`;
  },
};

/** Every tool that takes a path, and the rest of its arguments. */
const TOOLS: Readonly<Record<string, JsonObject>> = {
  read_file: {},
  write_file: { content: 'overwritten' },
  append_file: { content: 'appended' },
  edit_file: { old_text: SECRET, new_text: 'edited' },
  notify_file_edited: {},
  list_files: {},
  search_files: { pattern: 'secret' },
};

/** Names and contents of everything below a folder. */
async function everythingIn(folder: string): Promise<Record<string, string>> {
  const names = (await readdir(folder, { recursive: true })).sort();
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')])),
  );
}

describe.each(Object.keys(TOOLS))('%s cannot leave the root:', (tool) => {
  test.each(Object.entries(WAYS_OUT))('%s', async (_name, prepare) => {
    const { root, outside, call } = await builtIns();
    await writeFile(join(outside, 'secret.txt'), SECRET);
    const path = await prepare({ root, outside });
    const outcome = await call(tool, { path, ...TOOLS[tool] });
    expect(outcome.status).toBe('error');
    expect(codeOf(outcome)).toBe('outside_root');
    expect(JSON.stringify(outcome.result)).not.toContain(SECRET);
    expect(await everythingIn(outside)).toEqual({ 'secret.txt': SECRET });
    expect(await readdir(dirname(root))).not.toContain('nothing');
  });
});

test.each(['../outside', '/', 'link'])('run_command does not start in %s', async (cwd) => {
  const { root, outside, call } = await builtIns();
  await symlink(outside, join(root, 'link'));
  const outcome = await call('run_command', { command: 'touch made', cwd });
  expect(codeOf(outcome)).toBe('outside_root');
  expect(await readdir(outside)).toEqual([]);
});

test('list_files and search_files pass over links that lead out', async () => {
  const { root, outside, call } = await builtIns();
  await writeFile(join(outside, 'secret.txt'), SECRET);
  await symlink(outside, join(root, 'folder'));
  await symlink(join(outside, 'secret.txt'), join(root, 'file.txt'));
  expect(textOf(await call('list_files', { recursive: true }))).toBe('file.txt@\nfolder@');
  expect(textOf(await call('search_files', { pattern: 'secret' }))).toBe('\n[no line matches in 0 text files]'.trim());
});

test('paths that stay inside are taken, however they are written', async () => {
  const { root, call } = await builtIns();
  await mkdir(join(root, 'a/b'), { recursive: true });
  await writeFile(join(root, 'a/b/file.txt'), 'here');
  await symlink('a/b', join(root, 'inside'));
  await symlink('a/b/file.txt', join(root, 'link.txt'));
  for (const path of [
    'a/b/file.txt',
    './a//b/./file.txt',
    'a/../a/b/file.txt',
    `../${basename(root)}/a/b/file.txt`,
    join(root, 'a/b/file.txt'),
    'inside/file.txt',
    'link.txt',
    'a/b/file.txt/',
  ]) {
    const outcome = await call('read_file', { path });
    expect([path, textOf(outcome)]).toEqual([path, 'here']);
    expect(outcome.result.detail?.path).toBe('a/b/file.txt');
  }
});

test('writing through a link that stays inside writes the file that it names', async () => {
  const { root, call } = await builtIns();
  await mkdir(join(root, 'real'));
  await writeFile(join(root, 'real/file.txt'), 'old');
  await symlink('real/file.txt', join(root, 'link.txt'));
  expect((await call('write_file', { path: 'link.txt', content: 'new' })).status).toBe('ok');
  expect(await readFile(join(root, 'real/file.txt'), 'utf8')).toBe('new');
  expect(await readFile(join(root, 'link.txt'), 'utf8')).toBe('new');
});

test('the root may be given by a path that goes through a link', async () => {
  const { root, outside } = await freshGround();
  await writeFile(join(root, 'file.txt'), 'here');
  await symlink(root, join(outside, 'alias'));
  const folder = await RootFolder.open(join(outside, 'alias'));
  const file = await folder.openFile(join(outside, 'alias/file.txt'));
  expect(file.path).toBe('file.txt');
  await file.handle.close();
});

test('a hard link is an ordinary file', async () => {
  const { root, outside, call } = await builtIns();
  await writeFile(join(outside, 'shared.txt'), 'shared');
  await link(join(outside, 'shared.txt'), join(root, 'shared.txt'));
  expect(textOf(await call('read_file', { path: 'shared.txt' }))).toBe('shared');
});

/**
 * A link that is swapped in between the check and the use. The root asks its system for the real path, and this
 * system answers truthfully and then changes the ground.
 */
describe.each<Anchoring>(['descriptor', 'path'])('a swap between check and use, reached by %s:', (anchoring) => {
  async function rootThatSwaps(ground: Ground, swapAfter: string, swap: () => Promise<void>): Promise<RootFolder> {
    let swapped = false;
    return RootFolder.open(ground.root, {
      anchoring,
      realpath: async (path) => {
        const real = await realpath(path);
        if (!swapped && path === join(ground.root, swapAfter)) {
          swapped = true;
          await swap();
        }
        return real;
      },
    });
  }

  async function prepared(): Promise<Ground> {
    const ground = await freshGround();
    await mkdir(join(ground.root, 'folder'));
    await writeFile(join(ground.root, 'folder/secret.txt'), 'harmless');
    await writeFile(join(ground.outside, 'secret.txt'), SECRET);
    return ground;
  }

  test('of the file itself', async () => {
    const ground = await prepared();
    const file = join(ground.root, 'folder/secret.txt');
    const root = await rootThatSwaps(ground, 'folder/secret.txt', async () => {
      await rm(file);
      await symlink(join(ground.outside, 'secret.txt'), file);
    });
    await expect(root.openFile('folder/secret.txt')).rejects.toMatchObject({ code: 'outside_root' });
  });

  test('of the folder above it', async () => {
    const ground = await prepared();
    const root = await rootThatSwaps(ground, 'folder/secret.txt', async () => {
      await rename(join(ground.root, 'folder'), join(ground.root, 'moved'));
      await symlink(ground.outside, join(ground.root, 'folder'));
    });
    await expect(root.openFile('folder/secret.txt')).rejects.toMatchObject({ code: 'outside_root' });
  });

  test('of a folder that is opened', async () => {
    const ground = await prepared();
    const root = await rootThatSwaps(ground, 'folder', async () => {
      await rename(join(ground.root, 'folder'), join(ground.root, 'moved'));
      await symlink(ground.outside, join(ground.root, 'folder'));
    });
    // Either it sees the link (not a folder any more) or finds itself outside.
    await expect(root.openFolder('folder')).rejects.toThrow(/not a folder|root/);
  });

  test('of the folder that a new file is made in', async () => {
    const ground = await prepared();
    const root = await rootThatSwaps(ground, 'folder', async () => {
      await rename(join(ground.root, 'folder'), join(ground.root, 'moved'));
      await symlink(ground.outside, join(ground.root, 'folder'));
    });
    await expect(root.openPlace('folder/new.txt')).rejects.toMatchObject({ code: 'outside_root' });
    expect(await readdir(ground.outside)).toEqual(['secret.txt']);
  });

  test('of a file that is made or added to in an open folder', async () => {
    const ground = await prepared();
    const root = await rootThatSwaps(ground, '.', async () => {});
    const place = await root.openPlace('folder/new.txt');
    await symlink(join(ground.outside, 'made.txt'), join(ground.root, 'folder/new.txt'));
    for (const flags of [fs.O_CREAT | fs.O_APPEND | fs.O_WRONLY, fs.O_CREAT | fs.O_EXCL | fs.O_WRONLY, fs.O_TRUNC]) {
      await expect(place.folder.openFile('new.txt', flags)).rejects.toThrow();
    }
    await replaceFile(place, Buffer.from('new')).catch(() => {});
    await place.folder.close();
    expect(await readdir(ground.outside)).toEqual(['secret.txt']);
  });

  test('of a folder that is open already', async () => {
    const ground = await prepared();
    const root = await RootFolder.open(ground.root, {
      anchoring,
      realpath,
    });
    const place = await root.openPlace('folder/new.txt');
    await rename(join(ground.root, 'folder'), join(ground.root, 'moved'));
    await symlink(ground.outside, join(ground.root, 'folder'));
    const written = replaceFile(place, Buffer.from('new'));
    if (anchoring === 'descriptor') {
      // The folder that was opened is still the one that is written to, wherever it went.
      await written;
      expect(await readFile(join(ground.root, 'moved/new.txt'), 'utf8')).toBe('new');
    } else await expect(written).rejects.toMatchObject({ code: 'outside_root' });
    await place.folder.close();
    expect(await everythingIn(ground.outside)).toEqual({ 'secret.txt': SECRET });
  });
});

test('a folder that flips between itself and a link never gives the secret away', async () => {
  const { root, outside, call } = await builtIns();
  await mkdir(join(root, 'folder'));
  await writeFile(join(root, 'folder/secret.txt'), 'harmless');
  await writeFile(join(outside, 'secret.txt'), SECRET);
  let flipping = true;
  // The tools make missing folders, so any of these steps may find that another folder has taken the place.
  const attempt = (step: Promise<void>) => step.catch(() => {});
  const flips = (async () => {
    for (let flip = 0; flipping; flip++) {
      const [folder, away, spare] = [join(root, 'folder'), join(root, `away-${flip}`), join(root, `spare-${flip}`)];
      await symlink(outside, spare);
      await attempt(rename(folder, away));
      await attempt(rename(spare, folder));
      await attempt(unlink(folder));
      await attempt(rename(away, folder));
    }
  })();
  try {
    for (let round = 0; round < 150; round++) {
      const outcomes = await Promise.all([
        call('read_file', { path: 'folder/secret.txt' }),
        call('search_files', { path: 'folder', pattern: 'secret|harmless' }),
        call('write_file', { path: `folder/new-${round}.txt`, content: 'new' }),
        call('append_file', { path: 'folder/appended.txt', content: 'x' }),
      ]);
      expect(JSON.stringify(outcomes)).not.toContain(SECRET);
    }
  } finally {
    flipping = false;
    await flips;
  }
  expect(await everythingIn(outside)).toEqual({ 'secret.txt': SECRET });
});

test('a root lies in one of the folders that the host allows, also through links', async () => {
  const { root, outside } = await freshGround();
  await mkdir(join(root, 'below'));
  await symlink(outside, join(root, 'link'));
  const open = (path: string) =>
    RootFolder.open(path, undefined, { ...OPEN_RULES, roots: [join(outside, 'none'), root] });
  for (const allowed of [root, join(root, 'below')]) expect((await open(allowed)).path).toBe(await realpath(allowed));
  for (const refused of ['/', dirname(root), outside, join(root, 'link'), `${root}/..`])
    await expect(open(refused), refused).rejects.toMatchObject({
      code: 'root_not_local',
      message: expect.stringContaining(`policy.roots allows ${join(outside, 'none')}, ${root}`),
    });
});

test.each([
  ['is not there', 'no/such/folder'],
  ['is a file', 'file.txt'],
])('a root that %s fails with root_not_local', async (_name, path) => {
  const { outside } = await freshGround();
  await writeFile(join(outside, 'file.txt'), '');
  await expect(RootFolder.open(join(outside, path))).rejects.toMatchObject({ code: 'root_not_local' });
});
