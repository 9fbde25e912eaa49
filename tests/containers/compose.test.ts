/**
 * docker-compose.yml as a newcomer brings it up: everything becomes healthy, a session is started, asks a tool worker, waits for a
 * person, is steered past a hook service, and goes on when a host or a server of the bus is killed.
 */
import { execFile } from 'node:child_process';
import { request } from 'node:http';
import { promisify } from 'node:util';
import { connectNats } from '@coxswain/adapter-nats';
import type { BusClient } from '@coxswain/client';
import { JOURNAL_STREAMS, journalStreamOf, sessionRef, subjects } from '@coxswain/protocol';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { replicaContents } from '../cluster/replica-contents.ts';
import { endOf, eventOf, expectReplays, expectSound, journalOf } from '../e2e/kit/journal.ts';
import { until } from '../e2e/kit/until.ts';
import { composeProject, SERVERS } from './compose-project.ts';
import { writeAndReview } from './personas-at-work.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 1_200_000 });

const LASTING = [
  'commands-1',
  'commands-2',
  'gateway',
  'hooks',
  'nats-1',
  'nats-2',
  'nats-3',
  'persona-reviewer',
  'persona-writer',
  'retention',
  'sessions-1',
  'sessions-2',
  'tools',
];
const ONCE = ['keys', 'streams'];
const MODEL = 'scripted//examples/compose/script.yaml';
const EVER_MS = 120_000;
/** Nine clean restarts of a server, each until it is healthy, and a kill. */
const RESTARTED_WITHIN_MS = 900_000;

const project = composeProject();
let client: BusClient;
/** What reads journals needs no more of a bus. */
const bus = { client: {} as BusClient };

/** Connects to the ports that are published now: an ephemeral port changes when its container restarts. */
const connectAgain = async () => {
  await client?.close();
  client = await project.client();
  bus.client = client;
};

beforeAll(async () => {
  await project.compose('up', '--build', '--detach', '--wait');
  await connectAgain();
});
afterAll(async () => {
  await client?.close();
  await project.down();
});

const permissions = {
  rules: [
    { tool: 'write_file', action: 'ask' as const },
    // The policy of the hosts: no request lets commands run without a decision.
    { tool: 'run_command', action: 'ask' as const },
    { tool: '*', action: 'allow' as const },
  ],
};
const start = (sessionId: string) =>
  client.startSession({ prompt: 'Go.', model: MODEL, root: '/workspace', permissions }, { sessionId });
const isWaiting = (sessionId: string) => eventOf(bus, sessionId, 'approval_requested');
const allow = async (sessionId: string) => {
  const { call_id: callId } = await isWaiting(sessionId);
  // The same id each time: asked again, it changes nothing.
  await client.session(sessionId).approve(callId, { id: `allow-${sessionId}` });
};
/** A request to a published port by the host that the gateway is told to be: fetch names the port that it asks. */
const overHttp = (published: string, token: string, method: string, path: string, body?: unknown) =>
  new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
    const headers = { host: 'localhost:7707', authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const asked = request(`http://${published}${path}`, { method, headers }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (piece: string) => {
        text += piece;
      });
      answer.on('error', reject);
      answer.on('end', () => resolve({ status: answer.statusCode, text }));
    });
    asked.on('error', reject);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
const whenAnswered = <T>(what: string, ask: () => Promise<T>) => until(what, () => ask().catch(() => null), EVER_MS);
/** The service whose host wrote the newest record: incarnations are named for it. */
const hostOf = async (sessionId: string) =>
  /^sessions-\d/.exec((await journalOf(bus, sessionId)).records.at(-1)?.attempt ?? '')?.[0] as string;

test('every service is healthy, and what runs once has ended well', async () => {
  const containers = await project.containers();
  const lasting = containers.filter(({ Service }) => !ONCE.includes(Service));
  expect(lasting.map(({ Service }) => Service).sort()).toEqual(LASTING);
  for (const { Service, State, Health } of lasting)
    expect([Service, State, Health]).toEqual([Service, 'running', 'healthy']);
  const once = containers.filter(({ Service }) => ONCE.includes(Service));
  expect(once.map(({ State }) => State)).toEqual(['exited', 'exited']);
});

test('the image by itself plays the demo, with a read-only root file system', async () => {
  const run = ['run', '--rm', '--read-only', '--tmpfs', '/tmp', 'coxswain:test', 'demo'];
  const { stdout } = await promisify(execFile)('docker', run);
  expect(stdout).toContain('byte-identical');
});

test('nothing is root, nothing may write but where it has to, and the key that a service holds is its own', async () => {
  for (const service of LASTING) {
    const inside = (command: string) => project.compose('exec', '-T', service, 'sh', '-c', command);
    expect(await inside('id -u'), service).toBe('1000\n');
    expect(await inside('touch /probe 2>/dev/null && echo may || echo may not'), service).toBe('may not\n');
    if (service.startsWith('nats')) continue;
    if (service.startsWith('commands')) {
      expect(await inside('cat /run/coxswain/key.nk 2>&1 || true'), service).toContain('No such file');
      expect(await inside('getent hosts nats-1 || echo unknown'), service).toBe('unknown\n');
      const program = 'for at in "$HOME" /tmp; do cp /bin/echo "$at/probe"; "$at/probe" ran; rm "$at/probe"; done';
      expect(await inside(program), service).toBe('ran\nran\n');
      continue;
    }
    const role = service.replace(/s?(-\w+)?$/, '');
    expect(await inside('ls /run/coxswain'), service).toBe('key.nk\n');
    const owner = { session: 'host', gateway: 'gateway', retention: 'retention' }[role] ?? `${role}s`;
    expect(await inside('head -n 1 /run/coxswain/key.nk'), service).toContain(`the key of ${owner}`);
  }
});

test('a session asks the tool worker, waits for a person, hears a steer, and the hook service refuses a secret', async () => {
  await start('walk');
  await isWaiting('walk');
  const session = client.session('walk');
  // In two pieces, so that nobody takes this file for a leak.
  await session.steer(`use sk-${'ant-'.padEnd(40, 'x')} for it`);
  await session.steer('be brief');
  await project.cox('approve', 'walk');
  const journal = await endOf(bus, 'walk');
  const text = JSON.stringify(journal.records);
  expect(text).toContain('3 words');
  expect(journal.of('approval_decided')).toMatchObject([{ decision: 'allow' }]);
  expect(journal.of('call_ended').map(({ status }) => status)).toEqual(Array.from({ length: 7 }, () => 'ok'));
  expect(journal.of('injection_blocked')).toHaveLength(1);
  expect(text).toContain('holds an Anthropic key');
  const delivered = journal.of('message_injected').map((event) => JSON.stringify(event));
  expect(delivered.filter((event) => event.includes('be brief'))).toHaveLength(1);
  expect(delivered.filter((event) => event.includes('sk-ant'))).toEqual([]);
  expectSound(journal);
  await expectReplays(bus, journal);
});

test('over HTTP, with the token beside the key of the operator: a session is started and steered, and lets nothing run by itself', async () => {
  const inCox = ['run', '--rm', '-T', '--no-deps', '--entrypoint', 'cat', 'cox'];
  const token = (await project.compose(...inCox, '/run/coxswain/gateway.token')).trim();
  const published = (await project.compose('port', 'gateway', '7707')).trim();
  const startWith = (mayDo: object) =>
    overHttp(published, token, 'POST', '/v1/sessions', {
      session_id: 'by-http',
      prompt: 'Go.',
      model: MODEL,
      root: '/workspace',
      permissions: mayDo,
    });
  expect(await overHttp(published, 'none', 'GET', '/v1/sessions')).toMatchObject({ status: 401 });
  const refused = await startWith(permissions);
  expect(refused).toMatchObject({ status: 403, text: expect.stringContaining('permissions.rules.2') });
  expect(await startWith({ rules: [{ tool: 'write_file', action: 'ask' }] })).toMatchObject({ status: 202 });
  await isWaiting('by-http');
  const steered = await overHttp(published, token, 'POST', '/v1/sessions/by-http/steer', { body: 'be brief' });
  expect(steered).toMatchObject({ status: 202 });
  // Whoever approves does it on the bus: the gateway's key may not. Where no rule matches, people are asked, too.
  for (const nth of [0, 1]) {
    const asked = async () => (await journalOf(bus, 'by-http')).of('approval_requested')[nth];
    const { call_id: callId } = await until('the call to wait', asked, EVER_MS);
    await client.session('by-http').approve(callId);
  }
  const journal = await endOf(bus, 'by-http');
  expect(JSON.stringify(journal.of('message_injected'))).toContain('be brief');
  expectSound(journal);
});

test('a command of a session runs in the container of a runner: it reaches no key, no bus and no variable of a host', async () => {
  const command = [
    'cat /run/coxswain/key.nk',
    'env',
    'cat /proc/*/environ',
    'for name in nats-1 gateway; do getent hosts "$name" || echo "$name is unknown"; done',
    'touch /opt/coxswain/changed',
    'hostname > from-the-sandbox',
  ].join('; ');
  const script = JSON.stringify({
    turns: [{ text: 'Now.', calls: [{ tool: 'run_command', args: { command } }] }, { text: 'Done.' }],
  });
  const write = ['sh', '-c', 'printf %s "$0" > /workspace/command.yaml', script];
  await project.compose('exec', '-T', 'sessions-1', ...write);
  await client.startSession(
    { prompt: 'Go.', model: 'scripted//workspace/command.yaml', root: '/workspace' },
    { sessionId: 'command' },
  );
  await allow('command');
  const journal = await endOf(bus, 'command');
  const output = JSON.stringify(journal.of('call_ended'));
  expect(output).toMatch(/key\.nk: No such file/);
  expect(output).toContain('nats-1 is unknown');
  expect(output).toContain('gateway is unknown');
  expect(output).toMatch(/cannot touch '\/opt\/coxswain\/changed': Read-only/);
  expect(output).not.toContain('NATS_');
  const runner = (await hostOf('command')).replace('sessions', 'commands');
  const inside = (...args: string[]) => project.compose('exec', '-T', ...args);
  const name = await inside(runner, 'hostname');
  expect(await inside('sessions-1', 'cat', '/workspace/from-the-sandbox')).toBe(name);
});

test('the retention service purges a deleted session', async () => {
  const admin = await project.client('streams');
  onTestFinished(() => admin.close());
  const { receipt } = await admin.session('command').delete('asked for', { wait: 'accepted' });
  expect(receipt).toMatchObject({ detail: { purge: { records_within_ms: 60_000 } } });
  const nc = await connectNats(await project.access('streams'));
  onTestFinished(() => nc.close());
  const stored = async () => {
    const subject = subjects.journal(sessionRef('command'));
    const asked = `$JS.API.STREAM.INFO.${journalStreamOf('command')}`;
    const info = await nc.request(asked, JSON.stringify({ subjects_filter: subject }));
    return info.json<{ state: { subjects?: Record<string, number> } }>().state.subjects?.[subject];
  };
  // The tombstone is left.
  await until('the purge', async () => (await stored()) === 1, EVER_MS);
});

test('a second up changes nothing: the containers and the keys are those of the first', async () => {
  const ids = async () =>
    Object.fromEntries((await project.containers()).map(({ Service, ID }) => [Service, ID] as const));
  const key = () => project.compose('run', '--rm', '-T', '--entrypoint', 'cat', 'cox', '/run/coxswain/key.nk');
  const before = { ids: await ids(), key: await key() };
  await project.compose('up', '--detach', '--wait');
  expect({ ids: await ids(), key: await key() }).toEqual(before);
  expect(await project.cox('session', 'list')).toContain('walk');
});

test('one persona writes when a person lets it, the other one reviews, is killed meanwhile, and begins anew', async () => {
  const reviewer = 'persona-reviewer';
  await writeAndReview({
    client,
    scripts: '/examples/compose',
    root: '/workspace',
    killReviewer: async () => void (await project.compose('kill', '--signal', 'SIGKILL', reviewer)),
    startReviewer: async () => void (await project.compose('up', '--detach', '--no-recreate', '--wait', reviewer)),
  });
});

test('a persona is scaled to three instances and back, by nothing but its service', async () => {
  const instances = async () => {
    const lines = (await project.cox('persona', 'list', '--served', '--json')).trim().split('\n');
    const personas = lines.map((line) => JSON.parse(line) as { name: string; instances: unknown[] });
    return personas.find(({ name }) => name === 'reviewer')?.instances.length;
  };
  const scale = (to: number) =>
    project.compose(
      'up',
      '--detach',
      '--no-recreate',
      '--wait',
      '--scale',
      `persona-reviewer=${to}`,
      'persona-reviewer',
    );
  await scale(3);
  await until('three to serve', async () => (await instances()) === 3, EVER_MS);
  await scale(1);
  await until('one to serve', async () => (await instances()) === 1, EVER_MS);
});

test('the host of a session is killed: the other goes on with it, and the killed one comes back', async () => {
  await start('orphan');
  await allow('orphan');
  await until(
    'the session to read',
    async () => (await journalOf(bus, 'orphan')).of('call_ended').length >= 3,
    EVER_MS,
  );
  const killed = await hostOf('orphan');
  await project.compose('kill', '--signal', 'SIGKILL', killed);
  const journal = await endOf(bus, 'orphan');
  expect(new Set(journal.records.map(({ attempt }) => attempt.slice(0, 10)))).toEqual(
    new Set(['sessions-1', 'sessions-2']),
  );
  expect(journal.of('owned')).toHaveLength(1);
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
  expectSound(journal);
  await expectReplays(bus, journal);
  await project.compose('up', '--detach', '--no-recreate', '--wait', killed);
});

test('both hosts are replaced, one after the other, while a session runs: no call is cut short', async () => {
  await start('rolled');
  await allow('rolled');
  for (const host of ['sessions-1', 'sessions-2'])
    await project.compose('up', '--detach', '--no-deps', '--force-recreate', '--wait', host);
  const journal = await endOf(bus, 'rolled');
  expect(journal.of('call_ended').map(({ status }) => status)).toEqual(Array.from({ length: 7 }, () => 'ok'));
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
  expectSound(journal);
  await expectReplays(bus, journal);
});

test('a server of the bus is killed: sessions go on, and it catches up when it is back', async () => {
  await start('cut');
  await isWaiting('cut');
  await project.compose('kill', '--signal', 'SIGKILL', 'nats-2');
  // Where it led, nobody answers until another one does: seconds, and meanwhile askers are told so.
  await whenAnswered('the approval to be taken', () => allow('cut').then(() => true));
  const journal = await whenAnswered('the end', () => endOf(bus, 'cut'));
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
  expectSound(journal);
  await expectReplays(bus, journal);
  await project.compose('up', '--detach', '--no-recreate', '--wait', 'nats-2');
});

test(
  'all servers of the bus are killed while sessions run: after two clean restarts every replica has every record',
  async () => {
    const restartCleanly = async () => {
      for (const server of SERVERS) {
        await project.compose('restart', server);
        await project.compose('up', '--detach', '--no-recreate', '--wait', server);
      }
    };
    // A server recovers from its last clean stop.
    await restartCleanly();
    await connectAgain();
    const sessions = Array.from({ length: 6 }, (_, nth) => `killed-${nth}`);
    for (const sessionId of sessions) await whenAnswered('a session to start', () => start(sessionId).then(() => true));
    for (const sessionId of sessions) await whenAnswered('the call to wait', () => isWaiting(sessionId));
    await Promise.all(
      sessions.map((sessionId) => whenAnswered('the approval', () => allow(sessionId).then(() => true))),
    );
    await project.compose('kill', '--signal', 'SIGKILL', ...SERVERS);
    await project.compose('up', '--detach', '--no-recreate', '--wait', ...SERVERS);
    await connectAgain();
    const journals = new Map<string, readonly Uint8Array[]>();
    for (const sessionId of sessions) {
      const journal = await whenAnswered('the end', () => endOf(bus, sessionId));
      expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
      expectSound(journal);
      journals.set(sessionId, journal.bytes);
    }
    await restartCleanly();
    await restartCleanly();
    await connectAgain();
    for (const sessionId of sessions) {
      const journal = await whenAnswered('the journal', () => journalOf(bus, sessionId));
      expect(journal.bytes).toEqual(journals.get(sessionId));
      await expectReplays(bus, journal);
    }
    // Hosts check replicas: their key reads the streams of journals.
    const nc = await connectNats(await project.access('sessions-1'));
    onTestFinished(() => nc.close());
    const replicas = await Promise.all(JOURNAL_STREAMS.map((stream) => replicaContents(nc, stream, SERVERS)));
    const counts = SERVERS.map((server) => {
      const records = replicas.flatMap((servers) => servers.get(server) ?? []);
      const readOf = (sessionId: string) =>
        records.filter(({ subject }) => subject === subjects.journal(sessionRef(sessionId)));
      for (const [sessionId, bytes] of journals)
        expect(
          readOf(sessionId).map(({ data }) => Uint8Array.from(data)),
          `${sessionId} on ${server}`,
        ).toEqual(bytes);
      return `${server}: ${sessions.flatMap(readOf).length} records of ${sessions.length} sessions, ${records.length} in all`;
    });
    console.info(counts.join('\n'));
  },
  RESTARTED_WITHIN_MS,
);
