/** `cox health`: whether what serves from a state folder can do its work, told by its exit code within seconds. */
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { startOwnBus, type TestBus } from './kit/bus.ts';
import { Child, COX_MAIN, cox } from './kit/child.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';

let bus: TestBus;
let stateDir: string;
const services: Child[] = [];

beforeEach(async () => {
  bus = await startOwnBus();
  stateDir = await scratchFolder('health');
});
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.kill()));
  await bus.stop();
});
afterAll(removeScratch);

const env = () => ({ COX_STATE_DIR: stateDir });
const health = async () => {
  const { code, json } = await cox(['health', '--json'], { env: env() });
  return { code, said: json };
};
async function serve(): Promise<Child> {
  const service = new Child(COX_MAIN, ['serve', 'sessions', '--nats', bus.natsUrl, '--manifest', 'none'], {
    env: { ...env(), COX_HOST_NAME: 'named' },
  });
  services.push(service);
  await service.says('serves; stop with', 'stderr');
  return service;
}

test('a host that serves is healthy, under its name', async () => {
  const service = await serve();
  expect(await health()).toEqual({
    code: 0,
    said: [
      {
        type: 'health',
        service: 'sessions',
        pid: service.pid,
        healthy: true,
        message: expect.stringMatching(/^the session host named-.* is healthy$/),
      },
    ],
  });
});

test('where nothing serves it fails, also where something has', async () => {
  expect(await health()).toMatchObject({ code: 1, said: [{ type: 'error', code: 'not_running' }] });
  const service = await serve();
  await service.kill();
  expect(await health()).toMatchObject({ code: 1, said: [{ type: 'error', code: 'not_running' }] });
});

test('a host whose bus is gone is not healthy, nor is one that stands still', async () => {
  const service = await serve();
  await bus.stop();
  expect(await health()).toMatchObject({ code: 1, said: [{ service: 'sessions', healthy: false }] });
  service.process.kill('SIGSTOP');
  const { code, said } = await health();
  expect([code, said]).toMatchObject([1, [{ healthy: false, message: expect.stringContaining('no response within') }]]);
  service.process.kill('SIGCONT');
});

test('a service that is stopped when its bus is gone ends, and says that nobody heard of it', async () => {
  await serve();
  const file = join(stateDir, 'shout.mjs');
  await writeFile(
    file,
    `export default { name: 'shout', description: 'Shouts.', inputSchema: { type: 'object' }, execute: ({ text }) => String(text) };\n`,
  );
  const service = new Child(COX_MAIN, ['serve', 'tools', file, '--nats', bus.natsUrl], { env: env() });
  services.push(service);
  await service.says('serves shout', 'stderr');
  await bus.stop();
  await expect
    .poll(async () => (await health()).said.filter(({ healthy }) => healthy === false).length, { timeout: 60_000 })
    .toBe(2);
  service.process.kill('SIGTERM');
  expect((await service.exited).code).toBe(1);
  expect(service.stderr).toMatch(
    /^cox: nats_unreachable: the tool service of shout\.mjs has ended, and could not deregister from the bus: /m,
  );
});

test('what a killed service has left behind is gone when the next one starts', async () => {
  await (await serve()).kill();
  await serve();
  const sockets = (await readdir(stateDir)).filter((name) => name.endsWith('.health'));
  expect(sockets).toHaveLength(1);
  expect((await health()).code).toBe(0);
});
