/**
 * What docker-compose.yml runs, as processes of this machine: each of its services with the arguments, the key and the folders that it
 * has there, on a server that lets in only the users of `cox auth`. Containers are for tests/containers.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ComposedService, composedServices } from '../containers/composed-services.ts';
import { writeAndReview } from '../containers/personas-at-work.ts';
import { Child, COX_MAIN, cox, REPOSITORY } from './kit/child.ts';
import { clientOf } from './kit/gateway.ts';
import { type GuardedBus, type KeyOwner, startGuardedBus } from './kit/guarded-bus.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { until } from './kit/until.ts';

/** Which key lies in which volume, as deploy/compose/make-keys.sh hands them out. */
const KEYS: Readonly<Record<string, KeyOwner>> = {
  'key-host': 'host',
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

async function begin({ name, args, keyVolume, folders }: ComposedService): Promise<void> {
  await mkdir(stateOf(name), { recursive: true });
  const here = (arg: string) => {
    if (arg.startsWith(TOKENS_AT)) return arg.replace(TOKENS_AT, `${folder}/`);
    // Other gateways may listen on this machine.
    if (arg === GATEWAY_LISTENS) return GATEWAY_LISTENS.replace(/\d+$/, '0');
    const mounted = Object.keys(folders).find((at) => arg.startsWith(`${at}/`));
    return mounted === undefined ? arg : arg.replace(mounted, folders[mounted] as string);
  };
  const env = { ...bus.env(KEYS[keyVolume] as KeyOwner), COX_STATE_DIR: stateOf(name), COX_HOST_NAME: name };
  running.set(name, new Child(COX_MAIN, args.map(here), { cwd: join(folder, 'workspace'), env }));
}

const serviceOf = (name: string) => services.find((service) => service.name === name) as ComposedService;
const healthOf = ({ name, health }: ComposedService) => cox(health, { env: { COX_STATE_DIR: stateOf(name) } });
const healthy = (service: ComposedService) =>
  until(`${service.name} to be healthy`, async () => {
    const child = running.get(service.name);
    if (child?.exit) throw new Error(`${service.name} has ended: ${child.told}`);
    return (await healthOf(service)).code === 0;
  });

beforeAll(async () => {
  bus = await startGuardedBus(['default']);
  folder = await scratchFolder('deployment');
  await mkdir(join(folder, 'workspace'));
  const made = await cox([
    'auth',
    'token',
    'add',
    'operator',
    '--tokens',
    join(folder, 'tokens.json'),
    '--scope',
    'read,run,steer',
  ]);
  token = made.lines[0] ?? '';
  for (const service of services) await begin(service);
}, 300_000);
afterAll(async () => {
  await Promise.all([...running.values()].map((child) => child.kill()));
  await bus?.stop();
  await removeScratch();
});

test('it runs two hosts, hooks, tools, two personas and a gateway, each with a key of its own kind', () => {
  expect(services.map(({ name, keyVolume }) => [name, KEYS[keyVolume]])).toEqual([
    ['sessions-1', 'host'],
    ['sessions-2', 'host'],
    ['hooks', 'hooks'],
    ['tools', 'tools'],
    ['persona-reviewer', 'personas'],
    ['persona-writer', 'personas'],
    ['gateway', 'gateway'],
  ]);
});

test('every service becomes healthy, and the server has refused it nothing', async () => {
  for (const service of services) await healthy(service);
  const listed = await cox(['persona', '--json'], { env: bus.env('operator') });
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
  expect((await healthOf(serviceOf('persona-reviewer'))).code).toBe(0);
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

test('told to stop, each ends in order, and is no more healthy', async () => {
  const exits = await Promise.all([...running.values()].map((child) => child.terminate()));
  expect(exits).toEqual(exits.map(() => ({ code: 0, signal: null })));
  for (const service of services) expect((await healthOf(service)).code, service.name).toBe(1);
});
