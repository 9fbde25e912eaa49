/** `cox admin token`: names are unique within a tenant. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newToken, readTokens, writeTokens } from '@coxswain/gateway';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCox } from './run-cox.ts';

let folder: string;
const cox = (...args: string[]) =>
  runCox(['admin', 'token', ...args, '--tokens', join(folder, 'tokens.json')], { INIT_CWD: folder });
const listed = async (...flags: string[]) =>
  (await cox('list', '--json', ...flags)).out
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
    .map(({ name, tenant }) => `${name} ${tenant}`);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-tokens-'));
  for (const tenant of ['red', 'blue']) await cox('add', 'alice', '--scope', 'read', '--tenant', tenant);
  await cox('add', 'bob', '--scope', 'read');
});
afterEach(() => rm(folder, { recursive: true }));

test('the tokens of one tenant are listed and removed with --tenant', async () => {
  expect(await listed('--tenant', 'red')).toEqual(['alice red']);
  const removed = await cox('remove', 'alice', '--tenant', 'red', '--json');
  expect(JSON.parse(removed.out)).toEqual({ type: 'token_removed', name: 'alice', tenant: 'red', tokens: 1 });
  expect(await listed()).toEqual(['alice blue', 'bob default']);
  const again = await cox('remove', 'alice', '--tenant', 'red');
  expect(again).toMatchObject({ code: 1, err: expect.stringContaining('token_not_found') });
});

test('a name of several tenants is not removed without --tenant; a name of one tenant is', async () => {
  const several = await cox('remove', 'alice');
  expect(several).toMatchObject({ code: 2, err: expect.stringContaining('tenants red, blue; name one with --tenant') });
  expect(await cox('remove', 'bob')).toMatchObject({ code: 0 });
  expect(await listed()).toEqual(['alice red', 'alice blue']);
});

test.each([
  [['list', '--scope', 'read'], '--scope applies to cox admin token add, not to list'],
  [['remove', 'bob', '--expires', '1h'], '--expires applies to cox admin token add, not to remove'],
  [['list', '--tenant', 'a b'], '--tenant takes 1 to 64 characters'],
  [
    ['add', 'zoe', '--scope', 'read', '--expires', '999999999d'],
    '--expires takes a time such as 12h or 90d, of at most',
  ],
])('cox admin token %j is rejected', async (args, words) => {
  expect(await cox(...args)).toMatchObject({ code: 2, err: expect.stringContaining(words) });
  expect(await listed()).toHaveLength(3);
});

test('tokens that are added and removed at once are all added and removed', async () => {
  const names = ['carol', 'dave', 'erin', 'frank'];
  await Promise.all([...names.map((name) => cox('add', name, '--scope', 'read')), cox('remove', 'bob')]);
  expect((await listed()).sort()).toEqual(['alice blue', 'alice red', ...names.map((name) => `${name} default`)]);
  expect(await readdir(folder)).toEqual(['tokens.json']);
});

test('a file that is full stays readable', async () => {
  const path = join(folder, 'tokens.json');
  const fields = { tenant: 'default', scopes: ['read' as const], created_at: '2030-01-01T00:00:00.000Z' };
  const all = Array.from({ length: 10_000 }, (_, n) => newToken({ ...fields, name: `user ${n}` }).stored);
  await writeTokens(path, all);
  const added = await cox('add', 'zoe', '--scope', 'read');
  expect(added).toMatchObject({ code: 1, out: '', err: expect.stringContaining('at most 10000 tokens') });
  expect(await readTokens(path)).toHaveLength(10_000);
});

test('a file in a folder that does not exist is named with its problem', async () => {
  const asked = join(folder, 'missing/tokens.json');
  const added = await runCox(['admin', 'token', 'add', 'zoe', '--scope', 'read', '--tokens', asked], {});
  const words = `--tokens ${asked} cannot be written: no such file or directory (ENOENT)`;
  expect(added).toMatchObject({ code: 2, err: expect.stringContaining(words) });
});
