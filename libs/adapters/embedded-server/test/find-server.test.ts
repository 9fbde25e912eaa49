import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type FindServerOptions, findServer } from '../src/mod.ts';
import { temporaryDir, versionScript, writeExecutable } from './server-binary.ts';

const arch = 'x64';
const platform = 'linux';

const packageName = '@coxswain/nats-server-linux-x64';

/** A machine of which everything is known: one folder on the PATH, one installation, one cache, nothing to be fetched. */
function machine() {
  const root = temporaryDir();
  const path = join(root, 'bin');
  const cache = join(root, 'cache');
  const project = join(root, 'work', 'project');
  const said: string[] = [];
  const env: NodeJS.ProcessEnv = { PATH: `${path}:/bin:/usr/bin`, COX_CACHE_DIR: cache, COX_FETCH: 'never' };
  const options: FindServerOptions = {
    env,
    platform,
    arch,
    moduleDir: join(project, 'node_modules', 'coxswain', 'dist', 'cox'),
    report: { line: (text) => said.push(text), progress: () => {} },
    // Port 9 of loopback refuses; an empty folder is no Debian.
    release: { baseUrl: 'http://127.0.0.1:9' },
    debian: { root },
  };
  return {
    root,
    env,
    options,
    said,
    onPath: (version: string) => writeExecutable(join(path, 'nats-server'), versionScript(version)),
    /** @param folder of the `node_modules` folder, from the project's. */
    inPackage: (version: string, folder = '.') =>
      writeExecutable(join(project, folder, 'node_modules', packageName, 'bin', 'nats-server'), versionScript(version)),
    inCache: (version: string, content = versionScript(version)) =>
      writeExecutable(join(cache, 'nats-server', `${version}-${platform}-${arch}`, 'nats-server'), content),
    find: () => findServer(options),
  };
}

describe.skipIf(process.platform === 'win32')('the server is looked for', () => {
  test('in NATS_URL first, and then none is to be started', async () => {
    const { env, onPath, find } = machine();
    onPath('2.15.0');
    env.NATS_URL = 'nats://elsewhere:4222';
    expect(await find()).toEqual({ kind: 'external', url: 'nats://elsewhere:4222' });
  });

  // On /proc a recursive mkdir never ends; a link to nowhere answers alike, on every system.
  test.each([
    ['a link to nowhere', (root: string) => symlinkSync(join(root, 'nowhere/at/all'), join(root, 'cache'))],
    ['a file', (root: string) => writeFileSync(join(root, 'cache'), '')],
  ])('and nothing is fetched for a cache that is %s', async (_what, spoil) => {
    const { root, env, said, find } = machine();
    spoil(root);
    env.COX_FETCH = 'auto';
    env.PATH = join(root, 'bin');
    const error = await find().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'nats_server_not_found' });
    expect(String(error)).toMatch(/cache .*nothing can be kept there: .*; set COX_CACHE_DIR to a folder/);
    expect(said).toEqual([]);
  });

  test('in COX_NATS_SERVER before the PATH', async () => {
    const { root, env, onPath, find } = machine();
    onPath('2.15.0');
    const path = writeExecutable(join(root, 'mine'), versionScript('2.13.1'));
    env.COX_NATS_SERVER = path;
    expect(await find()).toEqual({ kind: 'binary', source: 'COX_NATS_SERVER', path, version: '2.13.1' });
  });

  test('on the PATH before the npm package', async () => {
    const { onPath, inPackage, find } = machine();
    const path = onPath('2.12.0');
    inPackage('2.15.1');
    expect(await find()).toEqual({ kind: 'binary', source: 'path', path, version: '2.12.0' });
  });

  test('in the npm package before the cache, if the one on the PATH is too old', async () => {
    const { onPath, inPackage, inCache, find } = machine();
    onPath('2.11.9');
    const path = inPackage('2.15.1');
    inCache('2.15.2');
    expect(await find()).toEqual({ kind: 'binary', source: 'package', path, version: '2.15.1' });
  });

  test('in the package that is nested in that of Coxswain before the hoisted one', async () => {
    const { inPackage, find } = machine();
    inPackage('2.15.0');
    const path = inPackage('2.15.1', 'node_modules/coxswain');
    expect(await find()).toMatchObject({ source: 'package', path });
  });

  test('in the package next to that of Coxswain in the store of a package manager', async () => {
    const { options, inPackage } = machine();
    const store = 'node_modules/.pnpm/coxswain@0.1.0';
    const path = inPackage('2.15.1', store);
    const moduleDir = join(path, '../../../../coxswain/dist');
    expect(await findServer({ ...options, moduleDir })).toMatchObject({ source: 'package', path });
  });

  test('and not in a package of the working directory or of NODE_PATH', async () => {
    const { root, env, inPackage, find } = machine();
    const hostile = join(root, 'hostile');
    inPackage('2.99.0', '../../hostile');
    env.NODE_PATH = join(hostile, 'node_modules');
    const before = process.cwd();
    process.chdir(hostile);
    try {
      await expect(find()).rejects.toThrow(`the npm package ${packageName}: is not installed with Coxswain`);
    } finally {
      process.chdir(before);
    }
  });

  test.each([
    ['an installation', 'project/node_modules/coxswain/dist'],
    ['a checkout', 'checkout/libs/adapters'],
  ])('and not in a package of a folder above %s', async (_what, module) => {
    const { root, options, inPackage } = machine();
    inPackage('2.99.0', '..');
    const error = findServer({ ...options, moduleDir: join(root, 'work', module) });
    await expect(error).rejects.toThrow(`the npm package ${packageName}: is not installed with Coxswain`);
  });

  test('in the cache when the package has a server that is too old or does not run here', async () => {
    const { root, inPackage, inCache, find } = machine();
    inPackage('2.11.0');
    const path = inCache('2.15.1');
    expect(await find()).toMatchObject({ source: 'cache', path });
    writeExecutable(join(root, 'work/project/node_modules', packageName, 'bin/nats-server'), 'not a program');
    expect(await find()).toMatchObject({ source: 'cache', path });
  });

  test('in the cache where there is no package for the platform', async () => {
    const { options } = machine();
    const error = findServer({ ...options, arch: 'riscv64' });
    await expect(error).rejects.toThrow('the npm package of nats-server: does not exist for linux on riscv64');
  });

  test('in the cache when the one on the PATH is too old, the newest that runs', async () => {
    const { onPath, inCache, find } = machine();
    onPath('2.10.29');
    inCache('2.12.9');
    const path = inCache('2.14.10');
    inCache('2.15.0', 'not a program');
    expect(await find()).toEqual({ kind: 'binary', source: 'cache', path, version: '2.14.10' });
  });

  test('in the cache of this kind of machine only', async () => {
    const { options, inCache } = machine();
    inCache('2.15.1');
    await expect(findServer({ ...options, arch: 'arm64' })).rejects.toMatchObject({ code: 'nats_server_not_found' });
  });

  test('nowhere else when COX_NATS_SERVER is wrong: what was asked for by name is not replaced', async () => {
    const { root, env, onPath, find } = machine();
    onPath('2.15.0');
    env.COX_NATS_SERVER = join(root, 'missing');
    await expect(find()).rejects.toMatchObject({
      code: 'nats_server_unusable',
      message: `${join(root, 'missing')} cannot be used as nats-server: no such file or directory (ENOENT)`,
    });
    env.COX_NATS_SERVER = writeExecutable(join(root, 'other'), '#!/bin/sh\necho "another program 3.0"\n');
    await expect(find()).rejects.toMatchObject({ code: 'nats_server_unusable' });
    env.COX_NATS_SERVER = writeExecutable(join(root, 'old'), versionScript('2.11.4'));
    await expect(find()).rejects.toMatchObject({ code: 'nats_server_too_old', version: '2.11.4', minimum: '2.12.0' });
  });
});

describe.skipIf(process.platform === 'win32')('when every source fails', () => {
  test('one error says what was tried, in order, and what to install', async () => {
    const { env, onPath, options, said, find } = machine();
    onPath('2.10.1');
    env.COX_FETCH = 'auto';
    const error = await find().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'nats_server_not_found' });
    const { attempts, message } = error as { attempts: { source: string; outcome: string }[]; message: string };
    expect(attempts.map(({ source }) => source.replace(options.env?.COX_CACHE_DIR ?? '', '<cache>'))).toEqual([
      'nats-server on the PATH',
      `the npm package ${packageName}`,
      'the cache <cache>/nats-server',
      'the official release',
      "the distribution's package",
    ]);
    expect(attempts[0]?.outcome).toContain('2.10.1');
    expect(attempts[3]?.outcome).toContain('ECONNREFUSED');
    expect(message).toContain('COX_NATS_SERVER');
    expect(said[0]).toContain('http://127.0.0.1:9/v');
  });

  test('COX_FETCH=never fetches nothing and is named as the reason', async () => {
    const { said, find } = machine();
    await expect(find()).rejects.toThrow('forbidden by COX_FETCH=never');
    expect(said).toEqual([]);
  });

  test('a COX_FETCH that means nothing is refused, not guessed', async () => {
    const { env, find } = machine();
    env.COX_FETCH = 'no';
    await expect(find()).rejects.toMatchObject({ code: 'fetch_setting_invalid' });
  });
});
