/** The policy file of a host, and what the host adds to it. */
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isRefused, TenantId } from '@coxswain/protocol';
import { expect, onTestFinished, test } from 'vitest';
import { hostRules } from '../src/load-policy.ts';

const tenant = TenantId.parse('red');

async function ground() {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'cox-policy-')));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'policy.yaml');
  const rulesOf = async (text: string | null, env: NodeJS.ProcessEnv = {}) => {
    if (text !== null) await writeFile(file, text);
    const sources = {
      file,
      policy: undefined,
      trustsBus: false,
      folder,
      ownPaths: [join(folder, 'host.nk')],
      origins: [],
    };
    return hostRules({ ...sources, stateDir: join(folder, 'state'), env });
  };
  return { folder, file, rulesOf };
}

test.each([
  ['roots:\n  - work\n', '2:5: roots[0]: must be an absolute path'],
  ['mcp_server: any\n', '1:1: unknown key "mcp_server"'],
  ['tenants:\n  red:\n    run_command: maybe\n', '3:18: tenants.red.run_command: must be one of deny, ask, allow'],
  ['roots: [', '1:9: '],
  ['- a\n', '1:1: the policy must be an object'],
])('a mistake is named by line and column: %j', async (text, message) => {
  const { file, rulesOf } = await ground();
  await expect(rulesOf(text)).rejects.toMatchObject({
    code: 'policy_invalid',
    message: expect.stringContaining(`${file}:${message}`),
  });
});

test('a file that is not there is named without a line', async () => {
  const { file, rulesOf } = await ground();
  await expect(rulesOf(null)).rejects.toMatchObject({
    code: 'policy_invalid',
    message: `${file}: no such file (ENOENT)`,
  });
});

test('a tenant has its own section; COX_ROOTS names the roots in one line, and not both', async () => {
  const { rulesOf } = await ground();
  const rules = await rulesOf('run_command: deny\ntenants: {red: {run_command: allow}}\n', { COX_ROOTS: '/a:/b' });
  expect(rules(tenant, false)).toMatchObject({ run_command: 'allow', roots: ['/a', '/b'] });
  expect(rules(TenantId.parse('blue'), false)).toMatchObject({ run_command: 'deny' });
  await expect(rulesOf('roots: [/a]', { COX_ROOTS: '/b' })).rejects.toMatchObject({ code: 'policy_invalid' });
});

test('the state folder, the policy and the keys are refused to every session, also of a trusted sender', async () => {
  const { folder, file, rulesOf } = await ground();
  const rules = (await rulesOf('trust_bus: true', { NATS_NKEY: join(folder, 'other.nk') }))(tenant, false);
  for (const path of [file, 'state/nats.json', 'host.nk', 'other.nk', '/proc/self/environ'])
    expect(isRefused(rules, path.startsWith('/') ? path : join(folder, path)), path).toBe(true);
  for (const path of ['work/a.txt', 'state/demo/a.txt']) expect(isRefused(rules, join(folder, path)), path).toBe(false);
});

test('with the key of the host, the folder of cox admin auth that it lies in is refused', async () => {
  const { folder, rulesOf } = await ground();
  const tools = join(folder, 'auth/tenants/red/workers');
  await mkdir(tools, { recursive: true });
  for (const name of ['keys.json', 'accounts.conf', 'host.nk', 'admin.nk'])
    await writeFile(join(folder, 'auth', name), '');
  for (const key of ['auth/host.nk', 'auth/tenants/red/workers/stock.nk']) {
    const rules = (await rulesOf('', { NATS_NKEY: join(folder, key) }))(tenant, false);
    expect(isRefused(rules, join(folder, 'auth/admin.nk')), key).toBe(true);
    expect(isRefused(rules, join(folder, 'work/a.txt')), key).toBe(false);
  }
});

test('a file of the host that is made later is refused where it will be, also behind a link', async () => {
  const { folder, rulesOf } = await ground();
  await mkdir(join(folder, 'real'));
  await symlink(join(folder, 'real'), join(folder, 'link'));
  const rules = (await rulesOf('', { NATS_NKEY: join(folder, 'link/keys/host.nk') }))(tenant, false);
  expect(isRefused(rules, join(folder, 'real/keys/host.nk'))).toBe(true);
});
