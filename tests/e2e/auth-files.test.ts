/** What `cox admin auth` writes, and what it refuses. */
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readSeedFile, SYSTEM_ROLES, TENANT_ROLES } from '@coxswain/adapter-nats';
import { afterAll, expect, test } from 'vitest';
import { cox } from './kit/child.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';

afterAll(removeScratch);

test('writes a key for every role and tenant, for its owner alone, and prints no seed', async () => {
  const out = join(await scratchFolder('auth'), 'deep', 'auth');
  const written = await cox(['admin', 'auth', '--out', out, '--tenant', 'red', '--tenant', 'blue', '--json']);
  expect(written.code).toBe(0);
  expect(`${written.stdout}${written.stderr}`).not.toMatch(/\bSU[A-Z2-7]{56}\b/);
  expect((await readdir(out)).sort()).toEqual([
    'README.md',
    'accounts.conf',
    'admin.nk',
    'host.nk',
    'keys.json',
    'retention.nk',
    'server.conf',
    'tenants',
  ]);
  const accounts = await readFile(join(out, 'accounts.conf'), 'utf8');
  expect(accounts).not.toMatch(/\bSU[A-Z2-7]{56}\b/);
  const keys = written.json as { file: string; publicKey: string; tenant?: string }[];
  expect(keys).toHaveLength(SYSTEM_ROLES.length + 2 * TENANT_ROLES.length);
  for (const { file, publicKey, tenant } of keys) {
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(accounts).toContain(publicKey);
    expect((await readSeedFile(file)).tenant).toBe(tenant);
  }
  expect((await stat(out)).mode & 0o777).toBe(0o700);
});

test('prints seeds where it is asked to', async () => {
  const out = join(await scratchFolder('auth'), 'auth');
  const written = await cox(['admin', 'auth', '--out', out, '--print-seeds']);
  const { seed } = await readSeedFile(join(out, 'host.nk'));
  expect(written.stdout).toContain(`host.nk ${seed}\n`);
});

test('writes nothing over what is there', async () => {
  const out = join(await scratchFolder('auth'), 'auth');
  await mkdir(out);
  const refused = await cox(['admin', 'auth', '--out', out, '--json']);
  expect(refused.code).toBe(1);
  expect(refused.json).toMatchObject([{ code: 'auth_out_exists', message: expect.stringContaining('--out') }]);
  expect(await readdir(out)).toEqual([]);
});

test('a worker’s own key is added to a folder that is there, replaced by a new one, and taken away', async () => {
  const out = join(await scratchFolder('auth'), 'auth');
  expect((await cox(['admin', 'auth', '--out', out, '--tenant', 'red', '--tenant', 'blue'])).code).toBe(0);
  const change = (...args: string[]) => cox(['admin', 'auth', '--out', out, ...args, '--json']);
  const accounts = () => readFile(join(out, 'accounts.conf'), 'utf8');
  const file = join(out, 'tenants/red/workers/stock.nk');
  const before = await accounts();

  const added = await change('--add', 'red/worker=stock=stock_level,reserve');
  expect(added.code, added.told).toBe(0);
  expect(added.json).toMatchObject([
    { type: 'key', role: 'tools', tenant: 'red', worker: 'stock', tools: ['stock_level', 'reserve'], file },
  ]);
  const { seed: first } = await readSeedFile(file);
  expect(await accounts()).toContain('reserve');

  const twice = await change('--add', 'red/worker=stock=stock_level');
  expect(twice.json).toMatchObject([{ code: 'key_exists', message: expect.stringContaining('red/worker=stock') }]);

  const replaced = await change('--remove', 'red/worker=stock', '--add', 'red/worker=stock=stock_level');
  expect(replaced.code, replaced.told).toBe(0);
  expect((await readSeedFile(file)).seed).not.toBe(first);
  const [{ publicKey: old }] = added.json as [{ publicKey: string }];
  expect(await accounts()).not.toContain(old);
  expect(await accounts()).not.toContain('reserve');

  // The role's own key stays: it is another.
  const removed = await change('--remove', 'red/worker=stock');
  expect(removed.code, removed.told).toBe(0);
  expect(removed.json).toEqual([{ type: 'key_removed', file }]);
  expect(await accounts()).toBe(before);
  await expect(stat(file)).rejects.toMatchObject({ code: 'ENOENT' });
  expect((await change('--remove', 'red/worker=stock')).json).toMatchObject([{ code: 'key_not_found' }]);
  expect(await readFile(join(out, 'keys.json'), 'utf8')).not.toContain('stock');

  for (const [told, ...args] of [
    ['NAME=TOOL,TOOL', '--add', 'red/worker=stock'],
    ['TENANT/stock', '--add', 'worker=stock=a'],
    ['red/worker=stock', '--remove', 'worker=stock'],
    ['--add [TENANT/]worker=', '--add', 'host=b', '--worker', 'red/stock=a'],
  ] as const) {
    const refused = await change(...args);
    expect([refused.code, refused.told]).toEqual([2, expect.stringContaining(told)]);
  }
});

test('--renew gives the keys that there are the rights of this version, and no other thing', async () => {
  const out = join(await scratchFolder('auth'), 'auth');
  expect((await cox(['admin', 'auth', '--out', out])).code).toBe(0);
  const conf = join(out, 'accounts.conf');
  const [accounts, key] = [await readFile(conf, 'utf8'), await readFile(join(out, 'host.nk'), 'utf8')];
  // As an older version has written it: without the last right.
  await writeFile(conf, accounts.replace(/ {6}"[^"]+"\n/, ''));
  const renewed = await cox(['admin', 'auth', '--out', out, '--renew', '--json']);
  expect(renewed.json, renewed.told).toEqual([{ type: 'renewed', changed: true }]);
  expect(await readFile(conf, 'utf8')).toBe(accounts);
  expect(await readFile(join(out, 'host.nk'), 'utf8')).toBe(key);
  const again = await cox(['admin', 'auth', '--out', out, '--renew', '--json']);
  expect(again.json, again.told).toEqual([{ type: 'renewed', changed: false }]);
});

test.each([['/dev/null/x'], ['/proc/foo']])(
  'a folder that cannot be made is told by the flag that names it: %s',
  async (out) => {
    const refused = await cox(['admin', 'auth', '--out', out, '--json']);
    expect(refused.json, refused.told).toMatchObject([{ code: 'auth_out_unusable' }]);
    expect(refused.stderr).toContain(`--out ${out}`);
    expect(refused.stderr).not.toMatch(/--state-dir/);
  },
);

test.each([
  [['admin', 'auth'], '--out'],
  [['admin', 'auth', '--out', ''], '--out'],
  [['admin', 'auth', '--out', 'x', '--tenant', 'a.b'], '--tenant'],
  [['admin', 'auth', '--out', 'x', '--tenant', '*'], '--tenant'],
  [['admin', 'auth', '--out', 'x', '--tenant', 'a', '--tenant', 'a'], '--tenant a'],
  [['admin', 'streams', '--nats', 'nats://127.0.0.1:1', '--replicas', '6'], '--replicas'],
  [['session', 'list', '--nats', 'nats://127.0.0.1:1', '--nkey', '/nowhere/key.nk'], '--nkey'],
])('%j is refused, naming %s', async (args, named) => {
  const refused = await cox(args, { cwd: await scratchFolder('bad') });
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain(named);
});
