/** Contexts: their storage, and the precedence of flags, environment and contexts. */
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { findBus, namedTenant } from '../src/connection/mod.ts';
import { claimFile, whileClaimed } from '../src/folders/mod.ts';
import { COMMANDS, parseLine } from '../src/line/mod.ts';
import { runCox } from './run-cox.ts';

let folder: string;
let env: NodeJS.ProcessEnv;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-contexts-'));
  env = { XDG_CONFIG_HOME: join(folder, 'config'), XDG_STATE_HOME: join(folder, 'state'), INIT_CWD: folder };
});
afterEach(() => rm(folder, { recursive: true }));

const cox = (...argv: string[]) => runCox(argv, env);

async function busOf(more: NodeJS.ProcessEnv, ...argv: string[]) {
  const line = parseLine(['session', 'list', ...argv], COMMANDS);
  if (line.kind !== 'command') throw new Error('not a command');
  const { address } = await findBus(line.flags, { ...env, ...more });
  return address && { servers: address.servers, source: address.source, tenant: namedTenant(line.flags, address) };
}

test('a context is stored for this user only, listed, selected and removed', async () => {
  expect((await cox('context', 'list')).err).toContain('no context is stored');
  expect((await cox('context', 'list', '--quiet')).err).toBe('');
  expect(await cox('context', 'add', 'prod', '--nats', 'tls://prod:4222', '--tenant', 'red')).toMatchObject({
    code: 0,
  });
  expect(await cox('context', 'add', 'test', '--nats', 'nats://test:4222', '-q')).toMatchObject({ code: 0, err: '' });
  const path = join(folder, 'config/coxswain/contexts.json');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({ current: 'prod' });
  expect((await cox('context', 'use', 'test')).out).toBe('the context test is in use\n');
  expect((await cox('context', 'list', '-o', 'yaml')).out).toBe(
    '---\ntype: context\nname: prod\ncurrent: false\nnats: tls://prod:4222\nnkey: null\ntenant: red\n' +
      '---\ntype: context\nname: test\ncurrent: true\nnats: nats://test:4222\nnkey: null\ntenant: null\n',
  );
  expect((await cox('context', 'list')).out).toMatch(/^ +prod +tls:\/\/prod:4222 +red *\n\* +test +nats:/);
  expect(await cox('context', 'remove', 'test')).toMatchObject({ code: 0 });
  expect(await busOf({})).toBeNull();
});

test('contexts that are added and selected at once are all stored', async () => {
  const names = ['a', 'b', 'c', 'd'];
  await Promise.all(names.map((name) => cox('context', 'add', name, '--nats', 'nats://host:4222')));
  await Promise.all([cox('context', 'remove', 'a'), cox('context', 'use', 'b')]);
  const path = join(folder, 'config/coxswain/contexts.json');
  const { current, contexts } = JSON.parse(await readFile(path, 'utf8'));
  expect([current, Object.keys(contexts).sort()]).toEqual(['b', ['b', 'c', 'd']]);
});

test('a file that another process keeps changing is not changed, and the error names that process', async () => {
  const path = join(folder, 'contexts.json');
  const claim = await claimFile(path);
  if (!('release' in claim)) throw new Error('nothing else claims the file');
  const changed = vi.fn(async () => 'changed');
  const message = `file_in_use: process ${process.pid} still changes ${path}; nothing was changed`;
  await expect(whileClaimed(path, changed, 0)).rejects.toMatchObject({ code: 'file_in_use', message });
  expect(changed).not.toHaveBeenCalled();
  await claim.release();
  expect(await whileClaimed(path, changed, 0)).toBe('changed');
});

test.each<[string, string[], RegExp]>([
  ['an address with a token', ['add', 'x', '--nats', 'nats://secret@host:4222'], /contexts hold no secrets/],
  ['a second address without a host', ['add', 'x', '--nats', 'nats://host,nats://'], /address 2 cannot be read/],
  ['no address', ['add', 'x'], /--nats nats:\/\/host:port/],
  ['another protocol', ['add', 'x', '--nats', 'wss://secret@host'], /nats:\/\/ or tls:\/\//],
  ['a name with a dot', ['add', 'a.b', '--nats', 'nats://host'], /1 to 64 characters/],
  ['the name none', ['add', 'none', '--nats', 'nats://host'], /not called none/],
  ['a key file that is not there', ['add', 'x', '--nats', 'nats://host', '--nkey', 'no.nk'], /--nkey/],
  ['a tenant with a dot', ['add', 'x', '--nats', 'nats://host', '--tenant', 'a.b'], /--tenant takes/],
])('%s is rejected, and nothing is stored', async (_what, args, message) => {
  const { code, err } = await cox('context', ...args);
  expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(message) });
  expect(err).not.toContain('secret@');
  expect((await cox('context', 'list', '--json')).out).toBe('');
});

test('an unknown context, and a second context with the same name, have error codes', async () => {
  expect((await cox('context', 'use', 'gone', '--json')).out).toContain('"code":"context_not_found"');
  await cox('context', 'add', 'prod', '--nats', 'nats://a:4222');
  expect((await cox('context', 'add', 'prod', '--nats', 'nats://b:4222', '-o', 'json')).out).toContain(
    '"context_exists"',
  );
  expect(await cox('context', 'add', 'prod', '--nats', 'nats://b:4222', '--force')).toMatchObject({ code: 0 });
  expect((await busOf({}))?.servers).toBe('nats://b:4222');
});

test.each<[string, string, RegExp]>([
  [
    'an unknown key',
    '{"current": null, "contexts": {"x": {"url": "y"}}}',
    /json is invalid: unknown key "contexts\.x\.url"/,
  ],
  ['a missing member', '{"current": null, "contexts": {"x": {}}}', /json is invalid: contexts\.x\.nats: is missing/],
  ['a token', '{"current": null, "contexts": {"x": {"nats": "nats://s3cret@h"}}}', /contexts\.x\.nats: must be nats:/],
  ['a name that is not there', '{"current": "y", "contexts": {}}', /json is invalid: current: there is no context y/],
  ['no JSON', '{', /json is not JSON/],
])('a file with %s is rejected with its member', async (_what, text, message) => {
  await cox('context', 'add', 'prod', '--nats', 'nats://a:4222');
  await writeFile(join(folder, 'config/coxswain/contexts.json'), text);
  const { code, err } = await cox('context', 'list');
  expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(message) });
  expect(err).not.toMatch(/s3cret|Invalid input|expected/);
});

test('a folder that cannot be created is named with its variable, and not as a state folder', async () => {
  const file = join(folder, 'file');
  await writeFile(file, '');
  const { code, err } = await runCox(['context', 'add', 'a', '--nats', 'nats://a:1'], {
    ...env,
    XDG_CONFIG_HOME: file,
  });
  const why = `the folder of contexts ${join(file, 'coxswain')} cannot be used`;
  expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(why) });
  expect(err).toMatch(/; correct it, or set XDG_CONFIG_HOME\n$/);
});

test.skipIf(process.platform === 'win32')('a file that other users can change is rejected', async () => {
  await cox('context', 'add', 'prod', '--nats', 'nats://a:4222');
  const path = join(folder, 'config/coxswain/contexts.json');
  await chmod(path, 0o644);
  expect((await cox('context', 'list')).code).toBe(0);
  await chmod(path, 0o664);
  expect((await cox('context', 'list')).err).toMatch(/contexts_invalid: .*json can be changed by other users/);
});

test('flags take precedence over the environment, which takes precedence over the context in use', async () => {
  await cox('context', 'add', 'prod', '--nats', 'nats://prod:4222', '--tenant', 'red');
  await cox('context', 'add', 'test', '--nats', 'nats://test:4222');
  const prod = { servers: 'nats://prod:4222', source: 'context', tenant: 'red' };
  expect(await busOf({})).toEqual(prod);
  expect(await busOf({}, '--tenant', 'blue')).toEqual({ ...prod, tenant: 'blue' });
  expect(await busOf({ NATS_URL: 'nats://env:4222', COX_STATE_DIR: join(folder, 'own') })).toMatchObject({
    source: 'NATS_URL',
    tenant: 'default',
  });
  expect(await busOf({ COX_STATE_DIR: join(folder, 'own') })).toBeNull();
  for (const NATS_URL of [undefined, 'nats://env:4222']) {
    const bus = await busOf({ NATS_URL }, '--nats', 'nats://flag:4222', '--state-dir', 'own');
    expect(bus).toEqual({ servers: 'nats://flag:4222', source: '--nats', tenant: 'default' });
    expect(await busOf({ NATS_URL }, '--state-dir', 'own')).toBeNull();
  }
  const test = { servers: 'nats://test:4222', source: 'context', tenant: 'default' };
  expect(await busOf({ NATS_URL: 'nats://env:4222' }, '--context', 'test')).toEqual(test);
  await expect(busOf({}, '--context', 'test', '--nats', 'nats://flag:4222')).rejects.toThrow('exclude each other');
});
