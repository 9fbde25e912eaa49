/** Slips of whoever looks after a bus, and what they are told. */
import { createSessionHost } from '@coxswain/session';
import { startSessionsService } from '@coxswain/sessions';
import { expect, test } from 'vitest';
import { cox } from './kit/child.ts';
import { guardedBusAndHost } from './kit/guarded-fixture.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';

const fixture = guardedBusAndHost();
const admin = (...args: string[]) => cox([...args, '--json'], { env: fixture.bus.env('admin') });

test('a tenant that --keep misspells has nothing swept, unless somebody is sure of it', async () => {
  const client = await fixture.bus.client('operator');
  const session = await client.startSession(
    { prompt: 'Go.', model: await scripted([{ text: 'Done.' }]) },
    { wait: 'accepted' },
  );
  await session.result();
  const refused = await admin('admin', 'retention', '--keep', '90d', '--keep', 'defualt=365d');
  expect(refused.code, refused.told).toBe(1);
  expect(refused.json).toMatchObject([{ code: 'tenant_not_found', message: expect.stringContaining('defualt') }]);
  const sure = await admin('admin', 'retention', '--keep', '90d', '--keep', 'defualt=365d', '--yes');
  expect(sure.code, sure.told).toBe(0);
  expect(sure.stderr).toContain('defualt');
  const deleted = await admin('session', 'delete', 'D1', '--yes');
  expect(deleted.json, deleted.told).toMatchObject([
    { code: 'session_not_found', message: 'there is no session D1 of the tenant default' },
  ]);
});

test('doctor names the hosts to the admin, and how many copies streams have', async () => {
  const checks = (await admin('doctor')).json;
  expect(checks.find(({ name }) => name === 'host')).toMatchObject({
    status: 'ok',
    message: expect.stringMatching(/^1 session host is alive: host-/),
  });
  expect(checks.find(({ name }) => name === 'stream_COX_COMMANDS')).toMatchObject({
    message: expect.stringMatching(/, 1 copy$/),
  });
  // Hosts elsewhere have the keys of providers.
  expect(checks.find(({ name }) => name === 'keys')).toMatchObject({ status: 'ok' });
});

test('doctor reads the replicas with the key of an admin or a host, and says who reads them with any other', async () => {
  const start = { prompt: 'Go.', model: await scripted([{ text: 'Done.' }]) };
  const session = await (await fixture.bus.client('operator')).startSession(start, { wait: 'accepted' });
  await session.result();
  for (const role of ['admin', 'host', 'operator'] as const) {
    const checks = (await cox(['doctor', '--json'], { env: fixture.bus.env(role) })).json;
    expect(
      checks.filter(({ name }) => String(name).startsWith('replicas')),
      role,
    ).toMatchObject([
      {
        name: 'replicas',
        status: 'ok',
        message: expect.stringMatching(
          role === 'operator' ? /hosts check replicas/ : /^replicas of 23 streams checked/,
        ),
      },
    ]);
  }
});

test.each([
  [['serve', 'sessions'], 'give a key of hosts'],
  [['session', 'import', 'package.json'], 'needs the key of an admin'],
])('a key that does not allow %j is told whose does', async (args, told) => {
  const refused = await cox([...args, '--json'], { env: fixture.bus.env('operator') });
  expect([refused.code, refused.json], refused.told).toMatchObject([
    1,
    [{ code: 'not_permitted', message: expect.stringContaining(told) }],
  ]);
  expect(refused.told).not.toContain('$JS');
});

test('a service with --json that cannot start writes JSON, and nothing else to either stream', async () => {
  for (const args of [['sessions'], ['tools', 'no-such-file.ts'], ['gateway']]) {
    const refused = await cox(['serve', ...args, '--json'], { env: fixture.bus.env('operator') });
    expect([refused.stderr, refused.json], refused.told).toMatchObject(['', [{ type: 'error' }]]);
  }
});

test.each([['*'], ['a.b'], ['é x'], ['x'.repeat(65)]])('a host is not called %s', async (hostName) => {
  const refused = await cox(['serve', 'sessions', '--json'], {
    env: { ...fixture.bus.env('host'), COX_HOST_NAME: hostName },
  });
  expect(refused.json, refused.told).toMatchObject([
    { code: 'invalid_id', message: expect.stringContaining('COX_HOST_NAME') },
  ]);
  const stateDir = await scratchFolder('state');
  await expect(startSessionsService({ nats: { servers: fixture.bus.url }, stateDir, hostName })).rejects.toMatchObject({
    code: 'invalid_id',
    field: 'hostName',
  });
  const ports = { clock: {}, ids: { next: () => '1' } } as unknown as Parameters<typeof createSessionHost>[0];
  expect(() => createSessionHost(ports, { name: hostName })).toThrow(/hostName/);
});

test('a session that is deleted is said to be, where no host lives, too', async () => {
  const client = await fixture.bus.client('operator');
  const session = await client.startSession(
    { prompt: 'Go.', model: await scripted([{ text: 'Done.' }]) },
    { wait: 'accepted' },
  );
  await session.result();
  const deleted = await admin('session', 'delete', session.id, '--yes', '--reason', 'asked\nfor');
  expect(deleted.code, deleted.told).toBe(0);
  await fixture.host.terminate();
  const told = await session.steer('Turn back.', { wait: 'accepted' }).catch((error: Error) => error);
  expect(told).toMatchObject({ code: 'session_deleted', message: expect.stringContaining('(asked for)') });
  fixture.host = await fixture.bus.startHost();
});
