/** `cox serve sessions --threads`: several session hosts as one service, each in a process of its own. */
import { readdir } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startBus, type TestBus } from './kit/bus.ts';
import { calls, done } from './kit/called-tools.ts';
import { Child, COX_MAIN, cox, lives } from './kit/child.ts';
import { endOf, eventOf, expectAllSound, journalOf } from './kit/journal.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { TRUSTED_BUS } from './kit/trusted-bus.ts';
import { until } from './kit/until.ts';

let bus: TestBus;
const services: Child[] = [];

beforeAll(async () => {
  bus = await startBus();
});
afterEach(() => Promise.all(services.splice(0).map((service) => service.kill())));
afterAll(async () => {
  await bus.stop();
  await removeScratch();
});

const HOSTS = ['one-1', 'one-2'] as const;

/** Starts a service of two hosts, and waits until both serve. */
async function serve(stateDir: string): Promise<Child> {
  const flags = ['--threads', '2', '--metrics-port', '0', '--manifest', 'none', '--json'];
  const service = new Child(COX_MAIN, ['serve', 'sessions', '--nats', bus.natsUrl, '--state-dir', stateDir, ...flags], {
    env: { ...TRUSTED_BUS, COX_HOST_NAME: 'one' },
  });
  services.push(service);
  await service.says('"type":"ready"');
  return service;
}

test('two hosts share the sessions, one that dies restarts while they continue, and SIGTERM stops all', {
  timeout: 300_000,
}, async () => {
  const stateDir = await scratchFolder('threads');
  const service = await serve(stateDir);
  const ready = service.json[0] as { readonly hosts: readonly string[]; readonly metrics_url: string };
  expect(ready.hosts.map((host) => host.slice(0, 5))).toEqual(HOSTS);

  const model = await scripted([calls('list_files', { path: '.' }), done]);
  const permissions = { rules: [{ tool: '*', action: 'ask' }] };
  const asked: { readonly id: string; readonly call_id: string }[] = [];
  const writers = new Set<string>();
  await until('sessions on both hosts', async () => {
    const id = `threads-${asked.length}`;
    await bus.command(id, 'start', { prompt: 'Go.', model, permissions });
    const { call_id } = await eventOf(bus, id, 'approval_requested');
    asked.push({ id, call_id });
    for (const { attempt } of (await journalOf(bus, id)).records) writers.add(attempt.slice(0, 5));
    return asked.length >= 8 && writers.size === HOSTS.length;
  });
  expect([...writers].sort()).toEqual(HOSTS);

  const pids = HOSTS.map((host) => pidOf(service, host));
  process.kill(pids[0] as number, 'SIGKILL');
  await Promise.all(asked.map(({ id, call_id }) => bus.command(id, 'approve', { call_id, decision: 'allow' })));
  for (const journal of await Promise.all(asked.map(({ id }) => endOf(bus, id))))
    expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
  expect(service.json).toContainEqual(
    expect.objectContaining({ type: 'session_host_restarted', host: 'one-1', why: 'SIGKILL', restart: 1 }),
  );
  await until('the restarted host to serve', () => pidOf(service, 'one-1') !== pids[0]);
  // A host that a signal stops in order restarts, too: its own stop is no failure of the bus.
  process.kill(pids[1] as number, 'SIGINT');
  await until('the stopped host to restart', () => pidOf(service, 'one-2') !== pids[1]);
  expect(service.json).toContainEqual(expect.objectContaining({ host: 'one-2', why: 'exit code 0', restart: 1 }));

  // The service answers for all its hosts, at one address and one socket.
  const metrics = async () => (await fetch(ready.metrics_url)).text();
  await until('metrics of both hosts', async () => {
    const text = await metrics();
    return HOSTS.every((host) => text.includes(`process_start_time_seconds{host="${host}"}`));
  });
  await until('the service to be healthy', async () => {
    const { code, json } = await cox(['health', '--json'], { env: { COX_STATE_DIR: stateDir } });
    return code === 0 && /^the service of the session hosts one-1-.*, one-2-.* is healthy$/.test(`${json[0]?.message}`);
  });

  const left = HOSTS.map((host) => pidOf(service, host));
  expect(await service.terminate()).toEqual({ code: 0, signal: null });
  expect(left.filter(lives)).toEqual([]);
  expect((await readdir(stateDir)).filter((name) => name.endsWith('.health'))).toEqual([]);
  await expectAllSound(bus);
});

test('hosts whose service is killed stop in order', { timeout: 300_000 }, async () => {
  const service = await serve(await scratchFolder('killed'));
  // Its output is closed once no host is left that writes to it.
  await service.kill();
  expect(linesOf(service, 'session host stops').map(({ name }) => name)).toEqual(expect.arrayContaining([...HOSTS]));
});

/** The process of a host, by its newest log line about its start. */
function pidOf(service: Child, host: string): number {
  return linesOf(service, 'session host is up').findLast(({ name }) => name === host)?.pid as number;
}

/** Complete log lines with this message. */
function linesOf({ stderr }: Child, message: string): { readonly name: string; readonly pid: number }[] {
  const lines = stderr.split('\n').slice(0, -1);
  return lines.filter((line) => line.includes(`"msg":"${message}"`)).map((line) => JSON.parse(line));
}
