/**
 * A request that names a thing of the host, by each way in: the host rejects it with a code and a field, and logs both with the
 * line of the policy. One shared host and one gateway; the attacker's token may run, read and steer.
 */
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startBus, type TestBus } from '../e2e/kit/bus.ts';
import { Child, COX_MAIN, cox } from '../e2e/kit/child.ts';
import { type GatewayUnderTest, startGateway } from '../e2e/kit/gateway.ts';
import { openSocket } from '../e2e/kit/page-socket.ts';
import { removeScratch, scratchFolder } from '../e2e/kit/scratch.ts';
import { until } from '../e2e/kit/until.ts';

const HOST_SECRET = 'sk-of-the-host-0123456789';
const SENT_SECRET = 'hunter2-of-the-sender';

let bus: TestBus;
let host: Child;
let gateway: GatewayUnderTest;
/** A session that has ended, and a fork of it. */
let ended: string;
let forked: string;
/** The sender's own server. */
let reached = 0;
const server = createServer((request, response) => {
  reached += 1;
  request.resume();
  response.writeHead(404).end();
});
let evil: string;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  evil = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const [folder, stateDir] = [await scratchFolder('work'), await scratchFolder('state')];
  await writeFile(join(folder, 'quick.yaml'), 'turns: [{text: quick}, {text: again}]');
  bus = await startBus();
  host = new Child(COX_MAIN, ['serve', 'sessions', '--json', '--nats', bus.natsUrl, '--state-dir', stateDir], {
    cwd: folder,
    env: { OPENAI_API_KEY: HOST_SECRET },
  });
  await host.says('"type":"ready"');
  const startToken = { name: 'mallory', scopes: ['run', 'read', 'steer'] as const };
  gateway = await startGateway(
    { natsUrl: bus.natsUrl, stateDir },
    { startToken: { ...startToken, scopes: [...startToken.scopes] } },
  );
  ended = await endedSession('/v1/sessions', { prompt: 'go', model: 'scripted/quick.yaml' });
  forked = await endedSession(`/v1/sessions/${ended}/fork`, {});
}, 300_000);
afterAll(async () => {
  await gateway?.stop();
  await host?.kill();
  await bus?.stop();
  server.close();
  await removeScratch();
});

async function endedSession(path: string, body: object): Promise<string> {
  const started = await gateway.post(`${path}?wait=accepted`, body);
  expect(started, JSON.stringify(started.body)).toMatchObject({ status: 202 });
  const id = started.body.session_id as string;
  await until('its end', async () => (await gateway.get(`/v1/sessions/${id}`)).body.state === 'stopped');
  return id;
}

/** What a refusal says to the sender. */
interface Refusal {
  readonly code: unknown;
  readonly field: unknown;
}
/** An attack, and the field as the host logs it. */
interface WayIn {
  readonly send: () => Promise<Refusal>;
  readonly logged: string;
  readonly line: string;
}

const start = (members: object) => ({ prompt: 'go', model: 'scripted/quick.yaml', ...members });
const overHttp = async (path: string, body: object): Promise<Refusal> => {
  const { status, body: answer } = await gateway.post(path, body);
  expect(status, JSON.stringify(answer)).toBe(403);
  return { code: answer.code, field: answer.field };
};
const onTheBus = async (id: string, body: object): Promise<Refusal> => {
  const box = bus.receipts();
  await bus.command(id, 'start', { id: `c-${id}`, ...body }, { 'Cox-Receipt-To': box.subject });
  const receipt = await box.at(`c-${id}`, 'rejected');
  return { code: receipt.code, field: receipt.field };
};

const WAYS: Readonly<Record<string, WayIn>> = {
  'a start over HTTP with a persona that names the address of a cloud’s metadata': {
    send: () => {
      const persona = {
        name: 'p',
        prompt: '',
        model: { name: 'openai-compatible/x', base_url: 'http://169.254.169.254/' },
      };
      return overHttp('/v1/sessions?wait=accepted', { prompt: 'go', persona });
    },
    logged: 'persona.model.base_url',
    line: 'policy: add it to origins',
  },
  'a fork of a fork on another address': {
    send: () =>
      overHttp(`/v1/sessions/${forked}/fork?wait=accepted`, { changes: { model: 'openai/x', base_url: evil } }),
    logged: 'fork.changes.base_url',
    line: 'policy: add it to origins',
  },
  'a prompt over a WebSocket with a script of the kernel': {
    send: async () => {
      const page = openSocket<{ ref?: string; problem?: Refusal }>(gateway, `/v1/sessions/${ended}/ws`);
      await until('the connection', () => page.socket.readyState === page.socket.OPEN);
      const body = { body: 'go', model: 'scripted//proc/self/environ' };
      page.send({ type: 'command', ref: 'r', verb: 'prompt', body, wait: 'accepted' });
      const { problem } = await page.seen('the problem', ({ ref }) => ref === 'r');
      page.socket.close();
      return { code: problem?.code, field: problem?.field };
    },
    logged: 'model',
    line: 'policy.roots allows',
  },
  'a start over AG-UI with the root of the system': {
    send: async () => {
      const sent = {
        threadId: 'agui-thread',
        runId: 'r1',
        messages: [{ id: 'm1', role: 'user', content: 'go' }],
        forwardedProps: { start: { model: 'scripted/quick.yaml', root: '/' } },
      };
      const { body } = await gateway.post('/v1/agui', sent);
      return { code: body.code, field: body.field };
    },
    logged: 'root',
    line: 'policy.roots allows',
  },
  'a start on the bus with a program as an MCP server': {
    send: () => onTheBus('bus-1', start({ mcp_servers: { sh: { command: '/bin/sh' } } })),
    logged: 'mcp_servers.sh',
    line: 'policy.mcp_servers is "none"',
  },
  'a start on the bus with a stand-in for a built-in tool': {
    send: () => onTheBus('bus-2', start({ stand_ins: { read_file: 'mine' } })),
    logged: 'stand_ins',
    line: 'policy.stand_ins is "none"',
  },
  'a start on the bus with a password in an address': {
    send: () => onTheBus('bus-3', start({ base_url: `https://u:${SENT_SECRET}@llm.example.org` })),
    logged: 'base_url',
    line: 'let the host hold the key',
  },
};

test.each(Object.entries(WAYS))(
  '%s: refused, and logged by the host with its field',
  async (_, { send, logged, line }) => {
    const before = host.stderr.length;
    const { code, field } = await send();
    expect(['not_allowed_by_policy', 'secret_in_request']).toContain(code);
    // HTTP names fields as its request has them.
    expect([logged.endsWith(String(field)), String(field).endsWith(logged)], `${field} of ${logged}`).toContain(true);
    const found = await until('the line of the log', () =>
      host.stderr
        .slice(before)
        .split('\n')
        .filter((text) => text.startsWith('{'))
        .map((text) => JSON.parse(text) as Record<string, unknown>)
        .find((entry) => entry.code === code),
    );
    expect(found).toMatchObject({ tenant: 'default', session_id: expect.any(String), field: logged });
    expect(JSON.stringify(found)).toContain(JSON.stringify(line).slice(1, -1));
  },
);

test('nothing of the attacks has reached the sender’s server, a journal or the log', async () => {
  expect(reached).toBe(0);
  const journals = await Promise.all(
    [ended, forked].map((id) => cox(['session', 'export', id, '--nats', bus.natsUrl])),
  );
  const kept = [host.stdout, host.stderr, ...journals.map(({ stdout }) => stdout)].join('\n');
  for (const secret of [HOST_SECRET, SENT_SECRET]) expect(kept.includes(secret), secret).toBe(false);
  expect(kept).not.toContain('/bin/sh');
});
