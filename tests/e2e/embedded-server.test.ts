/** `cox up` and its server: they end together, however they end, and what they held is there again. */
import { createServer } from 'node:net';
import { readConnection } from '@coxswain/adapter-nats';
import { connect } from '@coxswain/client';
import { connect as connectBare } from '@nats-io/transport-node';
import { afterAll, afterEach, expect, test } from 'vitest';
import { Child, COX_MAIN, cox, lives } from './kit/child.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const children: Child[] = [];
afterEach(async () => {
  await Promise.all(children.splice(0).map((child) => child.kill()));
});
afterAll(removeScratch);

interface Ready {
  readonly type: string;
  readonly nats_url: string;
  readonly token: string;
  readonly state_dir: string;
}

async function up(stateDir: string, ...more: string[]): Promise<{ readonly child: Child; readonly ready: Ready }> {
  const child = new Child(COX_MAIN, ['up', '--json', '--state-dir', stateDir, ...more]);
  children.push(child);
  await child.says('\n');
  return { child, ready: child.json[0] as unknown as Ready };
}

test('kill -9 of cox up leaves no server behind, and the next one has all that was there', async () => {
  const stateDir = await scratchFolder('up');
  const { child, ready } = await up(stateDir);
  expect(ready).toMatchObject({ type: 'ready', state_dir: stateDir });
  const server = (await readConnection(stateDir))?.pid as number;
  const where = ['--state-dir', stateDir];
  const model = await scripted([{ text: 'First.' }, { text: 'Second.' }]);
  const ran = await cox(['run', 'One', '--id', 'kept', '--model', model, ...where]);
  expect(ran.code, ran.told).toBe(0);
  const history = await cox(['session', 'export', 'kept', ...where]);

  await child.kill();
  await until('the server to end', () => !lives(server));

  const next = await up(stateDir);
  const listed = await cox(['session', 'list', '--json', ...where]);
  expect(listed.json).toMatchObject([{ session_id: 'kept', state: 'stopped', stop_reason: 'end_turn' }]);
  expect((await cox(['session', 'export', 'kept', ...where])).stdout).toBe(history.stdout);
  const more = await cox(['run', 'Two', '--session', 'kept', ...where]);
  expect(more.stdout).toBe('Second.\n');
  // In order, this time.
  expect((await next.child.terminate()).code).toBe(0);
  expect(lives((await readConnection(stateDir))?.pid ?? 2 ** 30)).toBe(false);
});

test('cox down stops the cox up of a state directory, and cox logs prints its log', async () => {
  const stateDir = await scratchFolder('up');
  const where = ['--state-dir', stateDir];
  const { child } = await up(stateDir);
  const logged = await cox(['logs', '--json', ...where]);
  expect(logged.json).toContainEqual(expect.objectContaining({ name: 'sessions', msg: 'session host is up' }));
  const down = await cox(['down', '--json', ...where]);
  expect(down.json, down.told).toEqual([{ type: 'stopped', pid: child.pid, state_dir: stateDir }]);
  expect(await child.exited).toEqual({ code: 0, signal: null });
  const again = await cox(['down', ...where]);
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining(`no cox up runs on ${stateDir}`) });
  expect((await cox(['logs', '--limit', '1', ...where])).stdout).toMatch(
    /^\d{4}-\S+Z \w+ (sessions|retention|gateway) .*\n$/,
  );
});

test('a server that is killed takes cox up with it, which says so', async () => {
  const stateDir = await scratchFolder('up');
  const { child } = await up(stateDir);
  process.kill((await readConnection(stateDir))?.pid as number, 'SIGKILL');
  expect((await child.exited).code, child.told).toBe(1);
  expect(child.stderr).toMatch(/nats-server ended by itself/);
  // There is nobody left to be told that partitions are let go.
  expect(child.stderr).not.toContain('could not be unpinned');
  // The folder is free again.
  await up(stateDir);
});

test('streams that are deleted under cox up end it, with a code', async () => {
  const { child, ready } = await up(await scratchFolder('up'));
  const nc = await connectBare({ servers: new URL(ready.nats_url).host, token: new URL(ready.nats_url).username });
  await nc.request('$JS.API.STREAM.DELETE.COX_COMMANDS');
  await nc.close();
  expect((await child.exited).code, child.told).toBe(1);
  expect(child.stderr).toMatch(/cox: streams_gone: /);
});

test('two instances side by side know nothing of each other; the port is the one asked for', async () => {
  const [one, two] = await Promise.all([scratchFolder('one'), scratchFolder('two')]);
  const port = await freePort();
  const [first, second] = await Promise.all([up(one, '--port', `${port}`), up(two)]);
  expect(new URL(first.ready.nats_url).port).toBe(`${port}`);
  expect(first.ready.token).not.toBe(second.ready.token);
  const model = await scripted([{ text: 'Here.' }]);
  const ran = await cox(['run', 'x', '--id', 'here', '--model', model, '--state-dir', one]);
  expect(ran.stdout, ran.told).toBe('Here.\n');
  expect((await cox(['session', 'list', '--json', '--state-dir', two])).stdout).toBe('');
  const shown = await cox(['session', 'show', 'here', '--state-dir', two]);
  expect(shown.code).toBe(1);
  expect(shown.stderr).toContain('session_not_found');

  // A stranger with the ready line, and one without its token.
  const { nats_url: servers, token } = first.ready;
  const client = await connect({ servers, token });
  expect(await client.sessionIds()).toEqual(['here']);
  await client.close();
  await expect(connectBare({ servers, token: 'wrong', reconnect: false })).rejects.toThrow(/authorization/i);
});

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
