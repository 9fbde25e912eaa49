/**
 * What a token of the scope `run` may name in a start: the environment, files and keys of the host stay where they are, on the
 * host of `cox up` and on a shared one.
 */
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startBus, type TestBus } from './kit/bus.ts';
import { Child, COX_MAIN, cox } from './kit/child.ts';
import { type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { until } from './kit/until.ts';

const SECRETS = { OPENAI_API_KEY: 'sk-of-the-host', COX_TEST_SECRET: 'variable-of-the-host' };

/** What a rejected command says, and no record keeps. */
const SENT_PATH = 'path-of-the-sender';

/** The sender's own server: it keeps whatever reaches it. */
const reached: string[] = [];
const server = createServer((request, response) => {
  reached.push(JSON.stringify({ url: request.url, headers: request.headers }));
  request.resume();
  response.writeHead(404).end();
});
let evil: string;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  evil = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.close();
  await removeScratch();
});

/** The start of each finding, and the field that its rejection names. */
const ATTACKS: Readonly<Record<string, (own: string) => { body: object; field: string }>> = {
  'a variable in a header': (own) => ({
    body: { mcp_servers: { evil: { url: own, headers: { Authorization: `Bearer \${OPENAI_API_KEY}` } } } },
    field: 'mcp_servers.evil',
  }),
  'a variable in a header of an inline persona': (own) => ({
    body: {
      persona: {
        name: 'p',
        prompt: '',
        mcp_servers: { evil: { url: own, headers: { 'X-A': `\${COX_TEST_SECRET}` } } },
      },
    },
    field: 'persona.mcp_servers.evil',
  }),
  'a command': () => ({ body: { mcp_servers: { sh: { command: '/bin/sh' } } }, field: 'mcp_servers.sh' }),
  'the root of the system': () => ({ body: { root: '/' }, field: 'root' }),
  'the environment as a root': () => ({ body: { root: '/proc/self' }, field: 'root' }),
  'a script that is a device': () => ({ body: { model: 'scripted//dev/zero' }, field: 'model' }),
  'an address for the key of the provider': (own) => ({
    body: { model: 'openai/x', base_url: own },
    field: 'base_url',
  }),
  'an address of a private network': (own) => ({
    body: { model: 'openai-compatible/x', base_url: own },
    field: 'base_url',
  }),
};

async function expectHarmless(gateway: GatewayUnderTest): Promise<void> {
  for (const [name, attack] of Object.entries(ATTACKS)) {
    const { body, field } = attack(evil);
    const sent = { prompt: 'go', model: 'scripted/quick.yaml', ...body };
    const answer = await gateway.post('/v1/sessions?wait=accepted', sent);
    expect(answer.status, `${name}: ${JSON.stringify(answer.body)}`).toBe(403);
    expect(String(answer.body.field).startsWith(field), name).toBe(true);
    // Programs and variables in a header need the scope approve before the host is asked.
    expect(['not_allowed_by_policy', 'scope_missing'], name).toContain(answer.body.code);
  }
  expect(reached).toEqual([]);
}

/** A session that names nothing beyond the folder of the host still works, and it cannot fork its way out. */
async function expectWorks(gateway: GatewayUnderTest, admin: GatewayUnderTest): Promise<string> {
  const started = await gateway.post('/v1/sessions?wait=accepted', { prompt: 'go', model: 'scripted/quick.yaml' });
  expect(started).toMatchObject({ status: 202 });
  const id = started.body.session_id as string;
  await until('its end', async () => (await admin.get(`/v1/sessions/${id}`)).body.state === 'stopped');
  const changes = { model: 'openai/x', base_url: `${evil}/${SENT_PATH}` };
  expect(await gateway.post(`/v1/sessions/${id}/fork`, { changes })).toMatchObject({
    status: 403,
    body: { code: 'not_allowed_by_policy', field: 'changes.base_url' },
  });
  const prompt = { body: 'again', ...changes };
  expect(await gateway.post(`/v1/sessions/${id}/prompt?wait=accepted`, prompt)).toMatchObject({
    status: 403,
    body: { code: 'not_allowed_by_policy', field: 'base_url' },
  });
  expect(reached).toEqual([]);
  return id;
}

describe.each(['cox up', 'cox serve sessions'])('on the host of %s', (kind) => {
  let host: Child;
  let gateway: GatewayUnderTest;
  let admin: GatewayUnderTest;
  let natsUrl: string;
  let bus: TestBus | undefined;

  beforeAll(async () => {
    const folder = await scratchFolder('work');
    const stateDir = await scratchFolder('state');
    await writeFile(join(folder, 'quick.yaml'), 'turns: [{text: quick}, {text: again}]');
    if (kind === 'cox up') {
      host = new Child(COX_MAIN, ['up', '--json', '--no-gateway', '--state-dir', stateDir], {
        cwd: folder,
        env: SECRETS,
      });
      await host.says('"type":"ready"');
      natsUrl = host.json[0]?.nats_url as string;
    } else {
      bus = await startBus();
      natsUrl = bus.natsUrl;
      host = new Child(COX_MAIN, ['serve', 'sessions', '--json', '--nats', natsUrl, '--state-dir', stateDir], {
        cwd: folder,
        env: SECRETS,
      });
      await host.says('"type":"ready"');
    }
    const at = { natsUrl, stateDir };
    gateway = await startGateway(at, { startToken: { name: 'runner', scopes: ['run'] } });
    admin = await startGateway(at, { startToken: { name: 'root', scopes: ['admin'] } });
  }, 300_000);
  afterAll(async () => {
    await gateway?.stop();
    await admin?.stop();
    await host?.kill();
    await bus?.stop();
  });

  test('a token that may only run reaches nothing of the host', () => expectHarmless(gateway));

  test('it runs what lies in the folder of the host, and its forks and prompts reach no further', async () => {
    const id = await expectWorks(gateway, admin);
    const { stdout } = await cox(['session', 'export', id, '--nats', natsUrl]);
    for (const secret of [...Object.values(SECRETS), SENT_PATH]) expect(stdout.includes(secret), secret).toBe(false);
  });

  test('the holder of an admin token configures the host of cox up, and not a shared one', async () => {
    const start = { prompt: 'go', model: 'scripted/quick.yaml', root: await scratchFolder('elsewhere') };
    const answer = await admin.post('/v1/sessions?wait=accepted', start);
    if (kind === 'cox up') expect(answer).toMatchObject({ status: 202 });
    else expect(answer).toMatchObject({ status: 403, body: { code: 'not_allowed_by_policy', field: 'root' } });
  });
});
