/** What `cox auth` writes, and what it refuses. */
import { mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readSeedFile, SYSTEM_ROLES, TENANT_ROLES } from '@coxswain/adapter-nats';
import { afterAll, expect, test } from 'vitest';
import { cox } from './kit/child.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';

afterAll(removeScratch);

test('writes a key for every role and tenant, for its owner alone, and prints no seed', async () => {
  const out = join(await scratchFolder('auth'), 'deep', 'auth');
  const written = await cox(['auth', '--out', out, '--tenant', 'red', '--tenant', 'blue', '--json']);
  expect(written.code).toBe(0);
  expect(`${written.stdout}${written.stderr}`).not.toMatch(/\bSU[A-Z2-7]{56}\b/);
  expect((await readdir(out)).sort()).toEqual([
    'README.md',
    'accounts.conf',
    'admin.nk',
    'host.nk',
    'keys.json',
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
  const written = await cox(['auth', '--out', out, '--print-seeds']);
  const { seed } = await readSeedFile(join(out, 'host.nk'));
  expect(written.stdout).toContain(`host.nk ${seed}\n`);
});

test('writes nothing over what is there', async () => {
  const out = join(await scratchFolder('auth'), 'auth');
  await mkdir(out);
  const refused = await cox(['auth', '--out', out, '--json']);
  expect(refused.code).toBe(1);
  expect(refused.json).toMatchObject([{ code: 'auth_out_exists', message: expect.stringContaining('--out') }]);
  expect(await readdir(out)).toEqual([]);
});

test.each([
  [['auth'], '--out'],
  [['auth', '--out', ''], '--out'],
  [['auth', '--out', 'x', '--tenant', 'a.b'], '--tenant'],
  [['auth', '--out', 'x', '--tenant', '*'], '--tenant'],
  [['auth', '--out', 'x', '--tenant', 'a', '--tenant', 'a'], '--tenant a'],
  [['streams', '--nats', 'nats://127.0.0.1:1', '--replicas', '6'], '--replicas'],
  [['sessions', '--nats', 'nats://127.0.0.1:1', '--nkey', '/nowhere/key.nk'], '--nkey'],
])('%j is refused, naming %s', async (args, named) => {
  const refused = await cox(args, { cwd: await scratchFolder('bad') });
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain(named);
});
