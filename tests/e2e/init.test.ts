/** `cox init`, as a stranger types it: the project is installed, tested and run, without a network. */
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { VERSION } from '@coxswain/protocol';
import { afterAll, expect, test, vi } from 'vitest';
import { cox, REPOSITORY } from './kit/child.ts';
import { cleanEnv } from './kit/clean-env.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';

vi.setConfig({ testTimeout: 240_000 });
afterAll(() => removeScratch());

const COX = join(REPOSITORY, 'libs/cli/bin/cox.mjs');

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function typed(cwd: string, program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { cwd, env: cleanEnv(env) }, (error, stdout, stderr) => {
      if (error && typeof error.code !== 'number') return reject(error);
      resolve({ code: Number(error?.code ?? 0), stdout, stderr });
    });
  });
}

const init = async (cwd: string, ...args: string[]) =>
  cox(['init', ...args], { cwd, env: { XDG_STATE_HOME: await scratchFolder('init-state') } });

test('a project is written, installed, tested and run', async () => {
  const folder = await scratchFolder('init');
  const stateHome = { XDG_STATE_HOME: await scratchFolder('init-state') };
  const made = await typed(folder, process.execPath, [COX, 'init', 'My Agents', '--link'], stateHome);
  expect(made, made.stderr).toMatchObject({ code: 0 });
  expect(made.stdout).toContain("cd 'My Agents'\n  npm install\n  npm test\n");

  const project = join(folder, 'My Agents');
  const noNetwork = {
    npm_config_registry: 'http://127.0.0.1:9/',
    npm_config_cache: join(folder, 'cache'),
    npm_config_audit: 'false',
    npm_config_update_notifier: 'false',
  };
  const installed = await typed(project, 'npm', ['install', '--offline'], noNetwork);
  expect(installed, installed.stderr).toMatchObject({ code: 0 });
  const tested = await typed(project, 'npm', ['test'], noNetwork);
  expect(tested, tested.stdout + tested.stderr).toMatchObject({ code: 0 });
  expect(tested.stdout).toMatch(/^(ℹ|#) pass 4$/m);

  const withoutServer = { ...noNetwork, PATH: folder, COX_NATS_SERVER: '', COX_FETCH: 'never', COX_CACHE_DIR: folder };
  const overBus = ['--test', '--test-reporter=tap', 'test/bus.test.mjs'];
  const skipped = await typed(project, process.execPath, overBus, withoutServer);
  expect(skipped, skipped.stdout + skipped.stderr).toMatchObject({ code: 0 });
  expect(skipped.stdout).toMatch(/^ok 1 - the tool is called where it is served # SKIP .*nats-server/m);

  // What the user's own command has written needs no question.
  const trusted = await typed(project, process.execPath, [COX, 'trust', '--json'], stateHome);
  expect(JSON.parse(trusted.stdout)).toMatchObject({ trusted: true, files: ['coxswain.yaml', 'personas/clerk.yaml'] });

  // Over HTTP alone, as pages import it; what both have is the same.
  await writeFile(
    join(project, 'tools/over-http.mts'),
    `import { CommandRejectedError, connect } from '@coxswain/client/http';
import { CommandRejectedError as ofBoth } from '@coxswain/client';
const client = await connect({ gateway: 'http://127.0.0.1:9', token: 'none' });
const sent: typeof client.startSession = client.startSession;
console.log(typeof sent, CommandRejectedError === ofBoth);
`,
  );
  const overHttp = await typed(project, process.execPath, [
    '--input-type=module',
    '--eval',
    `const [http, both] = await Promise.all([import('@coxswain/client/http'), import('@coxswain/client')]);
console.log(typeof http.connect, http.CommandRejectedError === both.CommandRejectedError);`,
  ]);
  expect(overHttp, overHttp.stderr).toMatchObject({ code: 0, stdout: 'function true\n' });
});

test('a project depends on the published packages of this version, and on the compiler that checks the starter', async () => {
  const folder = await scratchFolder('init');
  await init(folder);
  const { devDependencies } = JSON.parse(await readFile(join(REPOSITORY, 'package.json'), 'utf8'));
  const written = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  expect(written).toMatchObject({
    dependencies: { '@coxswain/client': VERSION, coxswain: VERSION },
    devDependencies: {
      '@coxswain/testing': VERSION,
      '@types/node': devDependencies['@types/node'],
      typescript: devDependencies.typescript,
    },
  });
});

test('the name of the project and the next steps fit every folder', async () => {
  const folder = await scratchFolder('init');
  for (const [named, name, cd] of [
    ['./-tide', 'tide', 'cd ./-tide'],
    ['Åse & Co', 'ase-co', "cd 'Åse & Co'"],
  ] as const) {
    expect((await init(folder, named)).stdout).toContain(`  ${cd}\n`);
    expect(JSON.parse(await readFile(join(folder, named, 'package.json'), 'utf8'))).toMatchObject({ name });
  }
});

test('what it says to type next is in its README, which has five lines', async () => {
  const folder = await scratchFolder('init');
  await init(folder);
  const readme = await readFile(join(folder, 'README.md'), 'utf8');
  expect(readme.trimEnd().split('\n')).toHaveLength(5);
  for (const line of ['npm install', 'npm test', '--persona clerk --model scripted/models/demo.yaml'])
    expect(readme).toContain(line);
  expect((await readdir(folder)).sort()).toEqual(
    [
      ...['.gitignore', 'README.md', 'coxswain.yaml', 'hooks', 'models', 'package.json', 'personas', 'test'],
      ...['tools', 'tsconfig.json'],
    ].sort(),
  );
});

test('files that are there are named and left as they are, but with --force', async () => {
  const folder = await scratchFolder('init');
  await mkdir(join(folder, 'tools'));
  await writeFile(join(folder, 'README.md'), 'mine');
  await writeFile(join(folder, 'notes.md'), 'mine too');
  await writeFile(join(folder, 'tools/count-words.mjs'), 'mine');
  const refused = await init(folder);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain(
    'has README.md, tools/count-words.mjs already; nothing was written. Name another folder, or use --force to overwrite them',
  );
  expect((await readdir(folder)).sort()).toEqual(['README.md', 'notes.md', 'tools']);
  const forced = await init(folder, '.', '--force', '--json');
  expect(forced, forced.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(forced.stdout)).toMatchObject({
    type: 'project',
    folder,
    files: expect.arrayContaining(['README.md', 'package.json']),
  });
  expect(await readFile(join(folder, 'README.md'), 'utf8')).not.toBe('mine');
  expect(await readFile(join(folder, 'notes.md'), 'utf8')).toBe('mine too');
});

test('a folder that cannot be written is named', async () => {
  const folder = await scratchFolder('init');
  await writeFile(join(folder, 'taken'), '');
  const refused = await init(folder, 'taken/agents');
  expect(refused.code).toBe(2);
  expect(refused.stderr).toMatch(/taken\/agents\S* cannot be written: /);
});

test('a folder that cannot be made ends with why, also on a file system that says of every folder that it is not there', async () => {
  const folder = await scratchFolder('init');
  await writeFile(join(folder, 'taken'), '');
  const below = await init(folder, 'taken/agents');
  expect(below.code).toBe(2);
  expect(below.stderr).toContain(
    `${join(folder, 'taken/agents')} cannot be written: a part of the path is not a folder (ENOTDIR)`,
  );
  if (process.platform !== 'linux') return;
  const nowhere = await init(folder, '/proc/nowhere/agents');
  expect(nowhere.code).toBe(2);
  expect(nowhere.stderr).toContain('cannot be written: no such file or directory');
});

test('what is no folder is told for what it is, and nothing is written', async () => {
  const folder = await scratchFolder('init');
  await writeFile(join(folder, 'file'), 'mine');
  await symlink('nothing', join(folder, 'dangling'));
  await symlink('file', join(folder, 'to-file'));
  for (const [name, said] of [
    ['', 'was given an empty name'],
    ['file', 'cox: file is a file; name'],
    ['dangling', 'cox: dangling is a link to nothing: nothing is missing; name'],
    ['to-file', 'cox: to-file is a link to file, which is not a folder; name'],
  ] as const)
    for (const force of [[], ['--force']]) {
      const refused = await init(folder, name, ...force);
      expect(refused.code, name).toBe(2);
      expect(refused.stderr).toContain(said);
    }
  expect((await readdir(folder)).sort()).toEqual(['dangling', 'file', 'to-file']);
  expect(await readFile(join(folder, 'file'), 'utf8')).toBe('mine');
});

test('a folder in which no tool looks for a project is not filled', async () => {
  const at = await scratchFolder('init');
  for (const named of ['node_modules', 'node_modules/mine']) {
    const { code, stderr } = await init(at, named);
    expect([code, stderr]).toEqual([2, expect.stringContaining('is inside node_modules')]);
  }
  expect(await readdir(at)).toEqual([]);
});

test('nothing is written through a link, with --force either', async () => {
  const folder = await scratchFolder('init');
  await writeFile(join(folder, 'outside.json'), 'mine');
  for (const name of ['file-link', 'folder-link', 'outside']) await mkdir(join(folder, name));
  await symlink('../outside.json', join(folder, 'file-link/package.json'));
  await symlink('../outside', join(folder, 'folder-link/tools'));
  for (const [name, link, to] of [
    ['file-link', 'package.json', '../outside.json'],
    ['folder-link', 'tools', '../outside'],
  ] as const) {
    const refused = await init(folder, name, '--force');
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain(`${join(folder, name, link)} is a link to ${to}`);
    expect(await readdir(join(folder, name))).toEqual([link]);
  }
  expect(await readFile(join(folder, 'outside.json'), 'utf8')).toBe('mine');
  expect(await readdir(join(folder, 'outside'))).toEqual([]);
  // The folder itself was named, and may be one.
  await symlink('outside', join(folder, 'named'));
  expect(await init(folder, 'named')).toMatchObject({ code: 0 });
});
