/** What a policy keeps from a model: keys, addresses, and files outside its folders. */
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HostPolicy, type HostPolicyInput, rulesFor, userText } from '@coxswain/protocol';
import { expect, onTestFinished, test } from 'vitest';
import { createModels, ownOrigins } from '../src/mod.ts';
import { rawServer } from './raw-server.ts';
import { ask } from './request.ts';

const KEYS = { OPENAI_API_KEY: 'key-openai', OPENAI_COMPATIBLE_API_KEY: 'key-compatible', ANTHROPIC_API_KEY: 'key-a' };

function rulesOf(policy: HostPolicyInput = {}, folder = '/srv/work', env: Record<string, string> = KEYS) {
  const surroundings = { folder, origins: ownOrigins(env), trustsBus: false };
  return rulesFor(HostPolicy.parse(policy), surroundings, 'default', false);
}

/** A provider that keeps the headers of each request. */
async function provider() {
  const seen: NodeJS.Dict<string | string[]>[] = [];
  const server = await rawServer((response, _, { headers }) => {
    seen.push(headers);
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":{"message":"not here"}}');
  });
  onTestFinished(() => server.close());
  return { seen, url: server.url, origin: new URL(server.url).origin };
}

test.each(['openai/m', 'openai-chat/m', 'anthropic/m', 'gemini/m'])(
  '%s has no use of an address that is not listed',
  async (name) => {
    const failure = await createModels({ env: KEYS }).check({ name, base_url: 'https://evil.example.org' }, rulesOf());
    expect(failure).toMatchObject({ code: 'not_allowed_by_policy' });
    expect(failure?.message).toContain('policy: add it to origins');
  },
);

test('a compatible server that is not listed is asked by the guarded fetch, without a key', async () => {
  const asked: { url: string; key: string | null }[] = [];
  const publicFetch: typeof fetch = async (input, init) => {
    asked.push({ url: String(input), key: new Headers(init?.headers).get('authorization') });
    throw new TypeError('fetch failed', { cause: new Error('not on the public network') });
  };
  const settings = { name: 'openai-compatible/m', base_url: 'https://llm.example.org' };
  const models = createModels({ env: KEYS, publicFetch });
  const rules = rulesOf();
  expect(await models.check(settings, rules)).toBeNull();
  const held = { check: () => models.check(settings, rules), resolve: () => models.resolve(settings, rules) };
  await ask(held, settings, [userText('go')]);
  expect(asked.length).toBeGreaterThan(0);
  expect(asked[0]).toEqual({ url: 'https://llm.example.org/chat/completions', key: null });
  const without = await createModels({ env: KEYS }).check(settings, rules);
  expect(without).toMatchObject({ code: 'not_allowed_by_policy' });
});

test.each<[string, (origin: string) => HostPolicyInput, string | undefined]>([
  ['with key_of', (origin) => ({ origins: [{ origin, key_of: 'openai-compatible' }] }), 'Bearer key-compatible'],
  ['with another’s key_of', (origin) => ({ origins: [{ origin, key_of: 'anthropic' }] }), undefined],
  ['without key_of', (origin) => ({ origins: [origin] }), undefined],
])('a listed origin %s gets what the policy says', async (_, policy, key) => {
  const { seen, url, origin } = await provider();
  const rules = rulesOf(policy(origin));
  const models = createModels({ env: KEYS });
  const settings = { name: 'openai-compatible/m', base_url: url };
  await ask({ check: () => models.check(settings, rules), resolve: () => models.resolve(settings, rules) }, settings, [
    userText('go'),
  ]);
  expect(seen[0]?.authorization).toBe(key);
});

test('the address that the environment names has the key, also where a request names it again', async () => {
  const { seen, url } = await provider();
  const env = { ...KEYS, OPENAI_BASE_URL: url };
  const models = createModels({ env });
  for (const settings of [{ name: 'openai-chat/m' }, { name: 'openai-chat/m', base_url: `${url}/v2` }]) {
    const rules = rulesOf({}, '/srv/work', env);
    await ask(
      { check: () => models.check(settings, rules), resolve: () => models.resolve(settings, rules) },
      settings,
      [userText('go')],
    );
  }
  expect(seen.map(({ authorization }) => authorization)).toEqual(['Bearer key-openai', 'Bearer key-openai']);
});

test('an address with a password is refused and not quoted', async () => {
  const env = { OPENAI_BASE_URL: 'https://user:hunter2@models.example.org', OPENAI_API_KEY: 'k' };
  const failure = await createModels({ env }).check({ name: 'openai/m' });
  expect(failure?.message).toContain('user name or password');
  expect(JSON.stringify(failure)).not.toContain('hunter2');
});

test.each(['scripted', 'replay'])('a file of a %s model lies in the roots, also through links', async (kind) => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'cox-policy-')));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const work = join(folder, 'work');
  await mkdir(work);
  await writeFile(join(work, 'in.yaml'), 'turns: [{text: quick}]');
  await writeFile(join(folder, 'out.yaml'), 'turns: [{text: secret}]');
  await symlink(join(folder, 'out.yaml'), join(work, 'link.yaml'));
  const models = createModels({ baseFolder: work });
  const rules = rulesOf({}, work);
  const codeOf = async (file: string) => (await models.check({ name: `${kind}/${file}` }, rules))?.code;
  expect(await codeOf('in.yaml')).not.toBe('not_allowed_by_policy');
  for (const file of ['link.yaml', '../out.yaml', join(folder, 'out.yaml'), '/proc/self/environ', '/dev/zero'])
    expect(await codeOf(file), file).toBe('not_allowed_by_policy');
});

test('no session reads a script that belongs to the kernel', async () => {
  const failure = await createModels().check({ name: 'scripted//proc/self/environ' });
  expect(failure).toMatchObject({ code: 'not_allowed_by_policy' });
});
