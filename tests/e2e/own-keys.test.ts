/** Every process under a key of its own, which is added, replaced and taken away while the bus runs. */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readSeedFile, TENANT_ROLES } from '@coxswain/adapter-nats';
import { connect } from '@coxswain/client';
import { expect, onTestFinished, test } from 'vitest';
import { Child, COX_MAIN, cox } from './kit/child.ts';
import { guardedBusAndHost } from './kit/guarded-fixture.ts';
import { policyFile } from './kit/hook-service.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const fixture = guardedBusAndHost();

const change = (...args: string[]) => cox(['admin', 'auth', '--out', fixture.bus.keys, ...args, '--json']);
const run = (file: string, ...args: string[]) =>
  cox([...args, '--json'], { env: { NATS_URL: fixture.bus.url, NATS_NKEY: file } });

test('a session under least rights: hooks guard it, a killed host’s calls are settled by one with another key, a fork decides otherwise', async () => {
  const added = await change('--add', 'host=second', '--add', 'operator=alice');
  expect(added.code, added.told).toBe(0);
  expect(added.json).toMatchObject([
    { type: 'key', role: 'host', name: 'second' },
    { type: 'key', role: 'operator', tenant: 'default', name: 'alice' },
  ]);
  await fixture.bus.reload();
  const policy = await policyFile(`
    import { defineHooks } from '@coxswain/client';
    export default defineHooks({ PreToolUse: { pattern: 'list_*', handler: () => ({ deny: 'no lists here' }) } });
  `);
  const service = new Child(COX_MAIN, ['serve', 'hooks', policy, '--name', 'policy', '--json'], {
    env: fixture.bus.env('hooks'),
  });
  await service.says('"type":"ready"');
  await fixture.host.says(/"service":"policy".*hooks are registered/);

  const alice = join(fixture.bus.keys, 'tenants/default/operator=alice.nk');
  const client = await connect({ servers: fixture.bus.url, ...(await readSeedFile(alice)) });
  onTestFinished(() => client.close());
  const root = await scratchFolder('root');
  const session = await client.startSession(
    {
      prompt: 'Go.',
      root,
      model: await scripted([
        { calls: [{ tool: 'list_files', args: {} }] },
        { calls: [{ tool: 'run_command', args: { command: 'echo ran >> ran; sleep 30' } }] },
        { text: 'Done.' },
        { text: 'Steered.' },
      ]),
      permissions: { rules: [{ tool: '*', action: 'allow' }] },
    },
    { wait: 'accepted' },
  );
  await until('the call to run', () => readFile(join(root, 'ran'), 'utf8').catch(() => null));
  await fixture.host.kill();
  // Nobody is there to say more than that it is stored.
  const steerer = await fixture.bus.client('steerer');
  await steerer.session(session.id).steer('and hurry');
  fixture.host = await fixture.bus.startHost(join(fixture.bus.keys, 'host=second.nk'));
  expect(await session.result()).toMatchObject({ stopReason: 'end_turn' });
  const ended: string[] = [];
  const injected: string[] = [];
  for await (const { record } of session.journal()) {
    for (const event of record.events) {
      if (event.type === 'call_ended') ended.push(event.status);
      if (event.type === 'message_injected') injected.push(event.origin);
    }
  }
  expect(ended).toEqual(['denied', 'interrupted']);
  expect(injected).toContain('steer');
  expect(await readFile(join(root, 'ran'), 'utf8')).toBe('ran\n');

  const forked = await run(alice, 'session', 'fork', session.id, '--prompt', 'And once more?');
  expect(forked.code, forked.told).toBe(0);
  expect(await service.terminate()).toMatchObject({ code: 0 });
});

test('a key that is taken away lets nobody in, and ends who is in; the others of its role stay', async () => {
  expect((await change('--add', 'viewer=desk')).code).toBe(0);
  await fixture.bus.reload();
  const old = await fixture.bus.as('viewer');
  const removed = await change('--remove', 'viewer');
  expect(removed.code, removed.told).toBe(0);
  expect(removed.json).toMatchObject([{ type: 'key_removed', file: fixture.bus.file('viewer') }]);
  await expect(stat(fixture.bus.file('viewer'))).rejects.toMatchObject({ code: 'ENOENT' });
  const lost = (async () => {
    for await (const { type } of old.status()) if (type === 'disconnect') return true;
    return true;
  })();
  await fixture.bus.reload();
  expect(await lost).toBe(true);
  const desk = join(fixture.bus.keys, 'tenants/default/viewer=desk.nk');
  expect(await run(desk, 'session', 'list')).toMatchObject({ code: 0 });
  // The keys that were not named are the ones that there were.
  expect(await run(fixture.bus.file('operator'), 'session', 'list')).toMatchObject({ code: 0 });
});

test('a tool service whose worker’s key is taken away ends, and says why', async () => {
  expect((await change('--add', 'worker=stock=stock_level')).code).toBe(0);
  await fixture.bus.reload();
  const file = join(await scratchFolder('tool'), 'stock.mjs');
  await writeFile(
    file,
    `export default { name: 'stock_level', description: 'How many', inputSchema: { type: 'object' }, execute: () => 'none' };`,
  );
  const service = new Child(COX_MAIN, ['serve', 'tools', file, '--json'], { env: fixture.bus.env('workers/stock') });
  await service.says('"type":"ready"');
  expect((await change('--remove', 'worker=stock')).code).toBe(0);
  await fixture.bus.reload();
  expect(await service.exited).toMatchObject({ code: 1 });
  expect(service.told).toMatch(/"code":"nats_unreachable","message":"[^"]*the bus no longer authorizes this user/);
  expect(service.told).not.toMatch(/^\s+at /m);
});

test('a tenant is added while the bus runs: its sessions are its own, the keys of others stay; taken away, it is let in no more', async () => {
  const before = await readFile(fixture.bus.file('operator'), 'utf8');
  const added = await change('--add', 'tenant=green', '--add', 'green/operator=bob');
  expect(added.code, added.told).toBe(0);
  expect(added.json.map(({ role }) => role)).toEqual([...TENANT_ROLES, 'operator']);
  // At the first time the server lets the users of a new account in, at the second it passes on what they send.
  await fixture.bus.reload();
  await fixture.bus.reload();
  expect(await readFile(fixture.bus.file('operator'), 'utf8')).toBe(before);
  const bob = join(fixture.bus.keys, 'tenants/green/operator=bob.nk');
  const client = await connect({ servers: fixture.bus.url, ...(await readSeedFile(bob)) });
  onTestFinished(() => client.close());
  const session = await client.startSession(
    { prompt: 'Go.', model: await scripted([{ text: 'Green.' }]) },
    { wait: 'accepted' },
  );
  expect(await session.result()).toMatchObject({ text: 'Green.' });
  const others = await run(fixture.bus.file('operator'), 'session', 'list');
  expect(others.told).not.toContain(session.id);
  const follow = async (items: AsyncGenerator<unknown, void, undefined>) => {
    for await (const _item of items);
  };
  const over = { code: 'nats_unreachable', message: expect.stringContaining('no longer authorizes this user') };
  const follows = [session.records(), session.records({ deltas: true })].map((items) =>
    expect(follow(items)).rejects.toMatchObject(over),
  );

  const twice = await change('--add', 'tenant=green');
  expect(twice.json).toMatchObject([{ code: 'tenant_exists' }]);
  const removed = await change('--remove', 'tenant=green');
  expect(removed.code, removed.told).toBe(0);
  expect(removed.json).toHaveLength(TENANT_ROLES.length + 1);
  await expect(stat(join(fixture.bus.keys, 'tenants/green'))).rejects.toMatchObject({ code: 'ENOENT' });
  await fixture.bus.reload();
  expect(await run(fixture.bus.file('operator'), 'session', 'list')).toMatchObject({ code: 0 });
  expect(await client.closed()).toBeInstanceOf(Error);
  await Promise.all(follows);
});

test.each([
  [['--add', 'operator'], 1, 'key_exists'],
  [['--add', 'captain=x'], 2, '--add captain=x'],
  [['--add', 'operator=a b'], 2, '--add operator=a b'],
  [['--add', 'nobody/operator=x'], 1, '--add tenant=nobody'],
  [['--add', 'tenant=a.b'], 2, 'tenant='],
  [['--remove', 'tenant=default'], 1, 'tenant_is_last'],
  [['--remove', 'tenant=nobody'], 1, 'tenant_not_found'],
  [['--remove', 'operator=nobody'], 1, 'key_not_found'],
  [['--remove', 'admin'], 1, 'key_is_last'],
  [['--add', 'operator=y', '--tenant', 'more'], 2, '--add tenant=NAME'],
  [['--renew', '--tenant', 'more'], 2, '--add tenant=NAME'],
])('%j changes nothing', async (args, code, told) => {
  const before = await readFile(join(fixture.bus.keys, 'accounts.conf'), 'utf8');
  const refused = await change(...args);
  expect(refused.code, refused.told).toBe(code);
  expect(refused.told).toContain(told);
  expect(await readFile(join(fixture.bus.keys, 'accounts.conf'), 'utf8')).toBe(before);
});

test('a folder that cox admin auth has not written is told so', async () => {
  const refused = await cox(['admin', 'auth', '--out', await scratchFolder('bare'), '--add', 'operator=x', '--json']);
  expect(refused.json).toMatchObject([{ code: 'keyring_unreadable' }]);
});

test('the bucket of beats, which a restarted server has forgotten, is made again by a host that lives on', async () => {
  const admin = await fixture.bus.as('admin');
  const isThere = async () => {
    const answer = await admin.request('$JS.API.STREAM.INFO.KV_cox_hosts', '', { timeout: 5_000 }).catch(() => null);
    return answer !== null && answer.json<{ error?: unknown }>().error === undefined;
  };
  expect(await isThere()).toBe(true);
  await fixture.bus.restart();
  await until('the bucket', isThere);
  expect(fixture.host.exit).toBeNull();
  const client = await fixture.bus.client('operator');
  const session = await client.startSession(
    { prompt: 'Go.', model: await scripted([{ text: 'Still here.' }]) },
    { wait: 'accepted' },
  );
  expect(await session.result()).toMatchObject({ text: 'Still here.' });
});
