/** `cox up` and its server: the server is restarted when it ends by itself, and both keep their state, tokens and ports. */
import { randomInt } from 'node:crypto';
import { stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { connect } from '@coxswain/client';
import { readConnection } from '@coxswain/ports/discovery';
import { connect as connectBare } from '@nats-io/transport-node';
import { afterAll, afterEach, expect, test } from 'vitest';
import { Child, COX_MAIN, cox, lives } from './kit/child.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';
import { waitCommand } from './kit/wait-command.ts';

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

/** A session in the middle of a tool call, which ends once `finish` is called; and a terminal that is attached to it. */
async function underWay({ nats_url: servers, token, state_dir: stateDir }: Ready) {
  const client = await connect({ servers, token });
  const root = await scratchFolder('root');
  const command = waitCommand('finish');
  const model = await scripted([
    { text: 'Working.', calls: [{ tool: 'run_command', args: { command } }] },
    { text: 'Done.' },
    // Where a steer comes after the next request has been sent.
    { text: 'Done.' },
    { text: 'Done.' },
    { text: 'Done.' },
  ]);
  const permissions = { rules: [{ tool: 'run_command', action: 'allow' as const }] };
  const session = await client.startSession({ prompt: 'Go.', model, root, permissions }, { wait: 'accepted' });
  const attached = new Child(COX_MAIN, ['attach', session.id, '--state-dir', stateDir]);
  children.push(attached);
  await until('the call to run', async () => (await session.state()).calls.length > 0);
  return { client, session, attached, finish: () => writeFile(join(root, 'finish'), '') };
}

/** The steers that a session's journal says were injected, in order. */
async function injectedIn(id: string, stateDir: string): Promise<string[]> {
  const { json } = await cox(['session', 'export', id, '--state-dir', stateDir]);
  const events = json.flatMap((record) => (record.events ?? []) as { readonly type: string }[]);
  const injected = events.filter(({ type }) => type === 'message_injected');
  return injected.map((event) => /(first|second|third) steer/.exec(JSON.stringify(event))?.[0] ?? 'another');
}

test('a server that is killed under a session comes back: session, client, terminal and accepted commands go on', async () => {
  const stateDir = await scratchFolder('up');
  const { child, ready } = await up(stateDir);
  const { client, session, attached, finish } = await underWay(ready);
  const server = (await readConnection(stateDir))?.pid as number;
  await session.steer('first steer', { wait: 'accepted' });
  process.kill(server, 'SIGKILL');
  await Promise.all([
    session.steer('second steer', { wait: 'accepted' }),
    cox(['steer', session.id, 'third steer', '--state-dir', stateDir]).then((sent) =>
      expect(sent.code, sent.told).toBe(0),
    ),
  ]);
  await child.says('"type":"nats_server_restarted"');
  const { url, pid } = (await readConnection(stateDir)) as { url: string; pid: number };
  expect(ready.nats_url).toContain(new URL(url).host);
  expect(pid).not.toBe(server);
  await finish();
  expect((await attached.exited).code, attached.told).toBe(0);
  expect(attached.stdout).toContain('Done.');
  expect((await injectedIn(session.id, stateDir)).sort()).toEqual(['first steer', 'second steer', 'third steer']);
  await client.close();
  // The gateway is announced for the server that runs now.
  const { stdout } = await cox(['env', '--json', '--state-dir', stateDir]);
  expect(JSON.parse(stdout)).toMatchObject({ COX_GATEWAY_URL: expect.stringContaining('http') });
  expect((await child.terminate()).code).toBe(0);
});

test('cox up keeps its tokens and ports over a restart; connected clients and terminals come back', async () => {
  const stateDir = await scratchFolder('up');
  // Ports that neither the system nor another instance chooses by itself while cox up is away.
  const ports = [await chosenPort(), await chosenPort()] as const;
  const first = await up(stateDir, '--port', `${ports[0]}`, '--gateway-port', `${ports[1]}`);
  const { client, session, attached, finish } = await underWay(first.ready);
  // A terminal that waits too long for the restart runs an instance of its own.
  attached.process.kill('SIGSTOP');
  expect((await first.child.terminate()).code, first.child.told).toBe(0);
  const second = await up(stateDir);
  attached.process.kill('SIGCONT');
  expect(second.ready).toEqual(first.ready);
  expect((await stat(join(stateDir, 'access.json'))).mode & 0o777).toBe(0o600);
  await session.steer('first steer', { wait: 'accepted' });
  await finish();
  expect((await attached.exited).code, attached.told).toBe(0);
  expect(attached.stdout).toContain('Done.');
  await client.close();
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

/** A free port below those that instances and the system choose. */
async function chosenPort(): Promise<number> {
  for (;;) {
    const port = randomInt(12_000, 20_000);
    if (await freePort(port).catch(() => null)) return port;
  }
}

/** The port, or any one for 0, if it is free. */
function freePort(wanted = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject).listen(wanted, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
