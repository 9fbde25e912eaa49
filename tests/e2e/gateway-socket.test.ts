/** The gateway's WebSockets: records and deltas one way, commands the other. */
import { join } from 'node:path';
import { newToken, writeTokens } from '@coxswain/gateway';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { busAndHost } from './kit/fixture.ts';
import { type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { openSocket } from './kit/page-socket.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

type Message = Readonly<Record<string, unknown>> & { readonly type: string };

const fixture = busAndHost();
let gateway: GatewayUnderTest;

beforeAll(async () => {
  gateway = await startGateway(fixture.bus);
});
afterAll(() => gateway?.stop());

async function waiting(): Promise<string> {
  const { body } = await gateway.post('/v1/sessions?wait=accepted', {
    prompt: 'go',
    model: await scripted([
      { calls: [{ tool: 'run_command', args: { command: 'sleep 30' } }] },
      { text: 'one two three', chunk_ms: 20 },
    ]),
    permissions: { rules: [{ tool: 'run_command', action: 'allow' }] },
    root: await scratchFolder('root'),
  });
  return body.session_id as string;
}

test('a session is followed and steered over one connection', async () => {
  const id = await waiting();
  const page = openSocket<Message>(gateway, `/v1/sessions/${id}/ws`);
  await page.seen(
    'the call',
    ({ type, record }) => type === 'record' && JSON.stringify(record).includes('call_started'),
  );
  expect(page.socket.protocol).toBe('coxswain.v1');
  page.send({ type: 'command', ref: 1, verb: 'steer', body: { body: 'look left' }, wait: 'accepted' });
  expect(await page.seen('the receipt', ({ ref }) => ref === 1)).toMatchObject({
    type: 'sent',
    session_id: id,
    receipt: { stage: 'accepted' },
  });
  page.send({ type: 'command', ref: 'c', verb: 'cancel', wait: 'accepted' });
  await page.seen('the cancel', ({ ref }) => ref === 'c');
  const stopped = ({ type, record }: Message) =>
    type === 'record' && (record as { state: unknown }).state === 'stopped';
  const { n: first } = await page.seen('the end', stopped);
  page.send({ type: 'command', verb: 'prompt', body: { body: 'go on' } });
  await page.seen('a piece of the answer', ({ type }) => type === 'delta');
  await page.seen('the second end', (message) => stopped(message) && Number(message.n) > Number(first) + 1);
  const numbers = page.messages.flatMap(({ type, n }) => (type === 'record' ? [n] : []));
  expect(numbers).toEqual(numbers.map((_, i) => i + 1));
  const [steered] = page.messages.filter(({ record }) => JSON.stringify(record ?? '').includes('steering_received'));
  expect(steered?.record).toMatchObject({ input: { actor: { name: 'tester' } } });

  const again = openSocket<Message>(gateway, `/v1/sessions/${id}/ws?from=3&deltas=false`);
  await again.seen('the last record', ({ n }) => n === numbers.length);
  expect(again.messages.map(({ n }) => n)).toEqual(numbers.slice(2));
  page.socket.close();
  again.socket.close();
});

test.each([
  [{ type: 'command', ref: 'r', verb: 'ster', body: {} }, 'unknown_command', 'steer'],
  [{ type: 'command', ref: 'r', verb: 'start', body: {} }, 'unknown_command', ''],
  [{ type: 'command', ref: 'r', verb: 'steer', body: { bdy: 'x' } }, 'unknown_field', 'body'],
  [{ type: 'command', ref: 'r', verb: 'steer', body: { body: 'x', actor: 'mallory' } }, 'unknown_field', 'actor'],
  [{ type: 'command', ref: 'r', verb: 'steer', bdoy: {} }, 'unknown_field', 'body'],
  [{ type: 'comand', ref: 'r' }, 'invalid_field', 'type'],
])('what is wrong with a message is answered under its ref: %j', async (message, code, words) => {
  const page = openSocket<Message>(gateway, `/v1/sessions/${await waiting()}/ws`);
  await page.seen('the first record', ({ n }) => n === 1);
  page.send(message);
  const { problem } = await page.seen('the problem', ({ ref }) => ref === 'r');
  expect(problem).toMatchObject({ code, detail: expect.stringContaining(words) });
  page.socket.close();
});

test('what is no JSON is answered, and the connection goes on', async () => {
  const page = openSocket<Message>(gateway, `/v1/sessions/${await waiting()}/ws`);
  await page.seen('the first record', ({ n }) => n === 1);
  page.socket.send('{');
  await page.seen('the problem', ({ type }) => type === 'problem');
  page.socket.send(Buffer.from([1, 2]));
  await until('the second problem', () => page.messages.filter(({ type }) => type === 'problem').length === 2);
  expect(page.closed()).toBeNull();
  page.socket.close();
});

test('a message that is too large ends it', async () => {
  const page = openSocket<Message>(gateway, `/v1/sessions/${await waiting()}/ws`);
  await page.seen('the first record', ({ n }) => n === 1);
  page.socket.send('x'.repeat(300_000));
  expect(await until('the end', () => page.closed())).toMatchObject({ code: 1009 });
});

test('no token, another site, no such session: refused before there is a connection', async () => {
  const id = await waiting();
  const path = `/v1/sessions/${id}/ws`;
  for (const [page, status] of [
    [openSocket<Message>(gateway, path, { token: 'cox_wrong' }), 401],
    [openSocket<Message>(gateway, path, { origin: 'https://evil.example' }), 403],
    [openSocket<Message>(gateway, '/v1/sessions/nobody/ws'), 404],
  ] as const)
    expect(await until('the refusal', () => page.refused())).toBe(status);
  expect(await gateway.get(path)).toMatchObject({ status: 426, body: { code: 'upgrade_required' } });
});

test('a gateway that stops says so', async () => {
  const own = await startGateway(fixture.bus);
  const page = openSocket<Message>(own, `/v1/sessions/${await waiting()}/ws`);
  await page.seen('the first record', ({ n }) => n === 1);
  await own.stop();
  expect(await until('the end', () => page.closed())).toEqual({ code: 1001, reason: 'gateway_stopping' });
});

test('a token that may do less now may do less on a connection that it has', async () => {
  const tokensFile = join(await scratchFolder('tokens'), 'tokens.json');
  const fields = { name: 'guest', tenant: 'default', created_at: new Date().toISOString() };
  const { token, stored } = newToken({ ...fields, scopes: ['read', 'steer'] });
  await writeTokens(tokensFile, [stored]);
  const own = await startGateway(fixture.bus, { tokensFile, times: { recheckMs: 2_000 } });
  try {
    const page = openSocket<Message>(own, `/v1/sessions/${await waiting()}/ws`, { token });
    await page.seen('the first record', ({ n }) => n === 1);
    page.send({ type: 'command', ref: 0, verb: 'steer', body: { body: 'x' }, wait: 'accepted' });
    expect(await page.seen('the answer', ({ ref }) => ref === 0)).toMatchObject({ type: 'sent' });
    await writeTokens(tokensFile, [{ ...stored, scopes: ['read'] }]);
    let ref = 0;
    await until('the steer to be refused', async () => {
      const asked = ++ref;
      page.send({ type: 'command', ref: asked, verb: 'steer', body: { body: 'x' } });
      const answer = await page.seen('the answer', (message) => message.ref === asked);
      return (answer.problem as { code: string } | undefined)?.code === 'scope_missing';
    });
    expect(page.closed()).toBeNull();
    page.socket.close();
  } finally {
    await own.stop();
  }
});

test('who never reads is cut off', async () => {
  const own = await startGateway(fixture.bus, { times: { stallMs: 1_000 } });
  try {
    const long = { text: 'x'.repeat(900_000), calls: [{ tool: 'run_command', args: { command: 'true' } }] };
    const { body } = await own.post('/v1/sessions?wait=accepted', {
      prompt: 'go',
      model: await scripted([...Array.from({ length: 18 }, () => long), { text: 'done' }]),
      permissions: { rules: [{ tool: 'run_command', action: 'allow' }] },
      root: await scratchFolder('root'),
    });
    const page = openSocket<Message>(own, `/v1/sessions/${body.session_id}/ws?deltas=false`);
    await page.seen('the first record', ({ n }) => n === 1);
    page.socket.pause();
    await until('the end of who does not read', async () => {
      const metrics = await (await own.raw('/metrics')).text();
      return /watchers_cut_off_total\{kind="websocket"\} 1/.test(metrics);
    });
    page.socket.resume();
    await until('the end of the connection', () => page.closed());
  } finally {
    await own.stop();
  }
});
