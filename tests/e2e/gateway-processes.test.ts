/** Gateways as people run them: processes of their own, with tokens from `cox admin token`, killed and started again. */
import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { exportJWK, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Child, cox } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { clientOf, type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { type GatewayProcess, makeTokens, serveGateway } from './kit/gateway-process.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();
let tokens: string;
let alice: string;
const running: Child[] = [];

beforeAll(async () => {
  const made = await makeTokens(['alice'], 'admin');
  tokens = made.file;
  alice = made.of.alice as string;
});
afterAll(async () => {
  for (const child of running) await child.kill();
});

async function serve(port: number, more: readonly string[] = ['--tokens', tokens]): Promise<GatewayProcess> {
  const served = await serveGateway(fixture.bus, port, more);
  running.push(served.child);
  return served;
}

const at = (port: number, token = alice) => clientOf(`http://127.0.0.1:${port}`, token);

async function start(gateway: Omit<GatewayUnderTest, 'stop'>, turns: Parameters<typeof scripted>[0]): Promise<string> {
  const { status, body } = await gateway.post('/v1/sessions?wait=accepted', {
    prompt: 'go',
    model: await scripted(turns),
    permissions: { rules: [{ tool: 'run_command', action: 'allow' }] },
    root: await scratchFolder('root'),
  });
  expect(status, JSON.stringify(body)).toBe(202);
  return body.session_id as string;
}

/** Follows a session over whichever address answers, coming back from what it has seen. @returns the numbers in order. */
async function follow(addresses: readonly number[], id: string): Promise<number[]> {
  const numbers: number[] = [];
  for (let attempt = 0; attempt < 500; attempt++) {
    const gateway = at(addresses[attempt % addresses.length] as number);
    try {
      const seen = numbers.at(-1);
      const answer = await gateway.raw(`/v1/sessions/${id}/events?deltas=false`, {
        headers: { accept: 'text/event-stream', ...(seen === undefined ? {} : { 'last-event-id': String(seen) }) },
      });
      let text = '';
      for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) {
        text += Buffer.from(chunk).toString('latin1');
        const frames = text.split('\n\n');
        text = frames.pop() ?? '';
        for (const frame of frames) {
          const n = /^id: (\d+)$/m.exec(frame)?.[1];
          if (n !== undefined) numbers.push(Number(n));
          if (/"state":"(stopped|failed)"/.test(frame)) return numbers;
        }
      }
    } catch {
      // The gateway is away: the next one, or the same again.
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  throw new Error(`never saw the end of ${id}`);
}

test('a gateway that is killed -9 and started again, and another beside it: clients go on without loss', async () => {
  const { child: killed, port: one } = await serve(0);
  const { port: two } = await serve(0);
  const id = await start(at(one), [
    ...Array.from({ length: 20 }, () => ({ calls: [{ tool: 'run_command', args: { command: 'sleep 0.1' } }] })),
    { text: 'done' },
  ]);
  const watching = [follow([one], id), follow([one, two], id), follow([two], id)];
  await until(
    'some records',
    async () => ((await at(two).get(`/v1/sessions/${id}/events`)).body.records as []).length > 6,
  );
  await killed.kill();
  // The same request again, under the same key, at the gateway that is left.
  const key = { 'idempotency-key': 'over-the-crash' };
  const steer = () => at(two).post(`/v1/sessions/${id}/followup?wait=accepted`, { body: 'and then?' }, key);
  const sent = [await steer(), await steer()];
  expect(sent[1]?.body.command_id).toBe(sent[0]?.body.command_id);
  const { child: again } = await serve(one);
  const { body } = await at(one).get(`/v1/sessions/${id}/events?limit=1000`);
  expect(body.records).toBeDefined();
  const seen = await Promise.all(watching);
  const all = (await at(two).get(`/v1/sessions/${id}/events?limit=1000`)).body.records as {
    n: number;
    events: { type: string }[];
  }[];
  for (const numbers of seen) expect(numbers).toEqual(all.slice(0, numbers.length).map(({ n }) => n));
  expect(all.flatMap(({ events }) => events).filter(({ type }) => type === 'followup_received')).toHaveLength(1);
  expect(await again.terminate()).toEqual({ code: 0, signal: null });
});

test('tokens are made, listed and taken back by cox; a gateway that runs knows it at once', async () => {
  const { port } = await serve(0);
  const bob = await cox([
    'admin',
    'token',
    'add',
    'bob',
    '--tokens',
    tokens,
    '--scope',
    'read',
    '--expires',
    '1h',
    '--json',
  ]);
  const [{ token } = { token: '' }] = bob.json as { token: string }[];
  await until('bob to be let in', async () => (await at(port, token).get('/v1/sessions')).status === 200);
  expect(await at(port, token).post('/v1/sessions', {})).toMatchObject({
    status: 403,
    body: { code: 'scope_missing' },
  });
  const twice = await cox(['admin', 'token', 'add', 'bob', '--tokens', tokens, '--scope', 'read']);
  expect(twice).toMatchObject({ code: 1 });
  expect(twice.stderr).toContain('token_exists');
  const listed = await cox(['admin', 'token', 'list', '--tokens', tokens]);
  expect(listed.stdout).toMatch(/alice +default +admin +never/);
  expect(listed.stdout).not.toContain(token);
  expect(await cox(['admin', 'token', 'remove', 'bob', '--tokens', tokens])).toMatchObject({ code: 0 });
  await until('bob to be refused', async () => (await at(port, token).get('/v1/sessions')).status === 401);
});

test.each([
  [['serve', 'gateway'], 'needs --tokens FILE'],
  [['serve', 'gateway', '--jwks', 'keys.json'], '--issuer and --audience are needed together'],
  [['serve', 'gateway', '--jwks', 'http://example.com/k', '--issuer', 'a', '--audience', 'b'], 'https://'],
  [['serve', 'gateway', '--tokens', 't.json', '--listen', 'nowhere'], '--listen takes HOST:PORT'],
  [['serve', 'sessions', '--tokens', 't.json'], 'has no flag --tokens'],
  [['admin', 'token', 'add', 'x', '--tokens', 't.json', '--scope', 'all'], '--scope takes read'],
])('cox %j is refused', async (args, words) => {
  const told = await cox([...args], { env: { NATS_URL: fixture.bus.natsUrl } });
  expect(told).toMatchObject({ code: 2 });
  expect(told.stderr).toContain(words);
});

test('an address that others reach needs the gateway’s name; a file of tokens that is none starts nothing', async () => {
  const args = ['serve', 'gateway', '--nats', fixture.bus.natsUrl, '--tokens', tokens];
  const open = await cox([...args, '--listen', '0.0.0.0:0']);
  expect(open.code).toBe(1);
  expect(open.stderr).toContain('--public-url');
  const none = await cox([
    'serve',
    'gateway',
    '--nats',
    fixture.bus.natsUrl,
    '--tokens',
    '/nowhere.json',
    '--listen',
    '0',
  ]);
  expect(none.code).toBe(1);
  expect(none.stderr).toContain('tokens_unreadable');
});

test('JSON Web Tokens: of this issuer, for this gateway, signed by its keys, and not over', async () => {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const keys = join(await scratchFolder('keys'), 'jwks.json');
  await writeFile(keys, JSON.stringify({ keys: [{ ...(await exportJWK(pair.publicKey)), kid: 'k', alg: 'ES256' }] }));
  const jwt = { jwks: keys, issuer: 'https://login.example', audience: 'coxswain' };
  const gateway = await startGateway(fixture.bus, { jwt });
  const signed = (claims: Record<string, unknown>, by = pair.privateKey, alg = 'ES256', exp = '1h') =>
    new SignJWT({
      scope: 'openid read cox:steer',
      tenant: 'default',
      sub: 'carol',
      iss: jwt.issuer,
      aud: jwt.audience,
      ...claims,
    })
      .setProtectedHeader({ alg, kid: 'k' })
      .setExpirationTime(exp)
      .sign(by);
  const status = async (token: string) =>
    (await gateway.send('GET', '/v1/sessions', undefined, { authorization: `Bearer ${token}` })).status;
  try {
    const good = await signed({});
    expect(await status(good)).toBe(200);
    const start = await gateway.send('POST', '/v1/sessions', { prompt: 'x' }, { authorization: `Bearer ${good}` });
    expect(start).toMatchObject({ status: 403, body: { code: 'scope_missing' } });
    expect(await status(await signed({ iss: 'https://evil.example' }))).toBe(401);
    expect(await status(await signed({ aud: 'another' }))).toBe(401);
    expect(await status(await signed({ tenant: 'no.such' }))).toBe(401);
    expect(await status(await signed({ tenant: undefined }))).toBe(401);
    expect(await status(await signed({ sub: 'session:x' }))).toBe(401);
    expect(await status(await signed({}, other.privateKey))).toBe(401);
    expect(await status(await signed({}, pair.privateKey, 'ES256', '-1h'))).toBe(401);
    const [head, body] = good.split('.');
    const unsigned = Buffer.from(JSON.stringify({ alg: 'none', kid: 'k' })).toString('base64url');
    expect(await status(`${unsigned}.${body}.`)).toBe(401);
    expect(await status(`${head}.${body}.AAAA`)).toBe(401);
  } finally {
    await gateway.stop();
  }
});
