/**
 * What docker-compose.yml runs, as processes of this machine: each of its services with the arguments, the key and the folders that it
 * has there, on a server that lets in only the users of `cox admin auth`. Containers are for tests/containers.
 */
import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ComposedService, composedServices } from '../containers/composed-services.ts';
import { writeAndReview } from '../containers/personas-at-work.ts';
import { Child, COX_MAIN, cox, REPOSITORY } from './kit/child.ts';
import { clientOf } from './kit/gateway.ts';
import { type GuardedBus, type KeyOwner, startGuardedBus } from './kit/guarded-bus.ts';
import { endOf, eventOf } from './kit/journal.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { until } from './kit/until.ts';

/** Which key lies in which volume, as deploy/compose/make-keys.sh hands them out. */
const KEYS: Readonly<Record<string, KeyOwner>> = {
  'key-host': 'host',
  'key-retention': 'retention',
  'key-hooks': 'hooks',
  'key-tools': 'tools',
  'key-personas': 'personas',
  'key-gateway': 'gateway',
};

const TOKENS_AT = '/run/gateway/';
const GATEWAY_LISTENS = '0.0.0.0:7707';

let bus: GuardedBus;
/** As make-keys.sh hands it to whoever holds the operator's key. */
let token = '';
let folder: string;
const running = new Map<string, Child>();
const services = composedServices();

const stateOf = (name: string) => join(folder, name);

async function begin({ name, args, keyVolume, commandVolume, folders, variables }: ComposedService): Promise<void> {
  await mkdir(stateOf(name), { recursive: true });
  const here = (arg: string) => {
    if (arg.startsWith(TOKENS_AT)) return arg.replace(TOKENS_AT, `${folder}/`);
    // Other gateways may listen on this machine.
    if (arg === GATEWAY_LISTENS) return GATEWAY_LISTENS.replace(/\d+$/, '0');
    const mounted = Object.keys(folders).find((at) => arg.startsWith(`${at}/`));
    return mounted === undefined ? arg : arg.replace(mounted, folders[mounted] as string);
  };
  const env = {
    ...(keyVolume === null ? {} : bus.env(KEYS[keyVolume] as KeyOwner)),
    ...(commandVolume === null ? {} : { COX_COMMAND_SOCKET: join(folder, `${commandVolume}.sock`) }),
    COX_STATE_DIR: stateOf(name),
    COX_HOST_NAME: name,
    ...(variables.includes('COX_ROOTS')
      ? { COX_ROOTS: [join(folder, 'workspace'), ...Object.values(folders)].join(delimiter) }
      : {}),
    // Hosts count passivated sessions only where they serve metrics.
    ...(variables.includes('COX_METRICS_PORT') && name !== 'gateway' ? { COX_METRICS_PORT: '0' } : {}),
  };
  running.set(name, new Child(COX_MAIN, args.map(here), { cwd: join(folder, 'workspace'), env }));
}

const serviceOf = (name: string) => services.find((service) => service.name === name) as ComposedService;
/** The exit code of the health check, as the image has it. */
const healthOf = ({ name, health }: ComposedService) =>
  new Promise<number | null>((resolve) => {
    const check = spawn(join(REPOSITORY, 'deploy/image', health), {
      env: { ...process.env, COX_STATE_DIR: stateOf(name) },
    });
    check.once('error', () => resolve(null)).once('exit', resolve);
  });
const healthy = (service: ComposedService) =>
  until(`${service.name} to be healthy`, async () => {
    const child = running.get(service.name);
    if (child?.exit) throw new Error(`${service.name} has ended: ${child.told}`);
    return (await healthOf(service)) === 0;
  });

beforeAll(async () => {
  bus = await startGuardedBus(['default']);
  folder = await scratchFolder('deployment');
  await mkdir(join(folder, 'workspace'));
  const made = await cox([
    'admin',
    'token',
    'add',
    'operator',
    '--tokens',
    join(folder, 'tokens.json'),
    '--scope',
    'read,run,steer',
  ]);
  token = made.lines[0] ?? '';
  // One after another: ten programs that start at once keep a busy machine longer than a first connection may take.
  for (const service of services) {
    await begin(service);
    await healthy(service);
  }
}, 300_000);
afterAll(async () => {
  await Promise.all([...running.values()].map((child) => child.kill()));
  await bus?.stop();
  await removeScratch();
});

test('it runs two hosts, a retention job, hooks, tools, two personas and a gateway, each with a key of its own kind, and runners without one', () => {
  expect(services.map(({ name, keyVolume }) => [name, keyVolume && KEYS[keyVolume]])).toEqual([
    ['sessions-1', 'host'],
    ['sessions-2', 'host'],
    ['commands-1', null],
    ['commands-2', null],
    ['retention', 'retention'],
    ['hooks', 'hooks'],
    ['tools', 'tools'],
    ['persona-reviewer', 'personas'],
    ['persona-writer', 'personas'],
    ['gateway', 'gateway'],
  ]);
});

test('every service becomes healthy, and the server has refused it nothing', async () => {
  for (const service of services) await healthy(service);
  const listed = await cox(['persona', 'list', '--served', '--json'], { env: bus.env('operator') });
  const personas = listed.json.map(({ name, instances }) => [name, (instances as unknown[]).length]);
  expect(personas).toEqual([
    ['reviewer', 1],
    ['writer', 1],
  ]);
  expect(await bus.refusals()).toEqual([]);
});

test('one persona writes when a person lets it, the other one reviews, is killed meanwhile, and begins anew', async () => {
  await writeAndReview({
    client: await bus.client('operator'),
    scripts: join(REPOSITORY, 'examples/compose'),
    root: join(folder, 'workspace'),
    killReviewer: async () => running.get('persona-reviewer')?.kill(),
    startReviewer: () => begin(serviceOf('persona-reviewer')),
  });
  expect(await healthOf(serviceOf('persona-reviewer'))).toBe(0);
});

test('a command of a session is a child of the runner of its host', async () => {
  const script = join(folder, 'workspace', 'command.yaml');
  const call = '{ tool: run_command, args: { command: "echo child of $PPID" } }';
  await writeFile(script, `turns:\n  - { text: Now., calls: [${call}] }\n  - text: Done.\n`);
  const client = await bus.client('operator');
  const started = { prompt: 'Go.', model: `scripted/${script}`, root: join(folder, 'workspace') };
  await client.startSession(started, { sessionId: 'command' });
  const { call_id: callId } = await eventOf({ client }, 'command', 'approval_requested');
  await client.session('command').approve(callId);
  const journal = await endOf({ client }, 'command');
  const host = /^sessions-\d/.exec(journal.records.at(-1)?.attempt ?? '')?.[0] ?? '';
  const runner = running.get(host.replace('sessions', 'commands')) as Child;
  expect(JSON.stringify(journal.of('call_ended'))).toContain(`child of ${runner.process.pid}\\n`);
});

test('a root outside the workspace is rejected: the file tools cannot read the key of a host', async () => {
  const client = await bus.client('operator');
  const start = { prompt: 'Go.', model: `scripted/${join(REPOSITORY, 'examples/compose/script.yaml')}`, root: '/' };
  await expect(client.startSession(start, { sessionId: 'outside', wait: 'accepted' })).rejects.toMatchObject({
    code: 'not_allowed_by_policy',
    field: 'root',
  });
});

test('sessions are seen over HTTP, by the name that the file gives the gateway and with the token that it makes', async () => {
  const gateway = running.get('gateway') as Child;
  const [, port] = /"port":(\d+)/.exec(gateway.stderr) ?? [];
  const { byHost } = clientOf(`http://127.0.0.1:${port}`, token);
  const { status, body } = await byHost('localhost:7707', '/v1/sessions');
  expect(status).toBe(200);
  expect((body.sessions as unknown[]).length).toBeGreaterThan(0);
  expect(await byHost('elsewhere:7707', '/v1/sessions')).toMatchObject({ status: 403 });
  expect(await bus.refusals()).toEqual([]);
});

test('what they write, to either stream, is lines of JSON and nothing else', () => {
  for (const [name, { stdout, stderr }] of running) {
    const lines = `${stdout}\n${stderr}`.split('\n').filter((line) => line !== '');
    expect(lines.length, name).toBeGreaterThan(0);
    for (const line of lines) expect(() => JSON.parse(line), `${name}: ${line}`).not.toThrow();
  }
});

test('a service that stands still is not healthy, and is again when it goes on', async () => {
  const tools = serviceOf('tools');
  running.get('tools')?.process.kill('SIGSTOP');
  try {
    expect(await healthOf(tools)).toBe(1);
  } finally {
    running.get('tools')?.process.kill('SIGCONT');
  }
  await healthy(tools);
});

test('told to stop, each ends in order, and is no more healthy', async () => {
  const exits = await Promise.all([...running.values()].map((child) => child.terminate()));
  expect(exits).toEqual(exits.map(() => ({ code: 0, signal: null })));
  for (const service of services) expect(await healthOf(service), service.name).toBe(1);
});
