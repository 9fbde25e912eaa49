/**
 * A session's events over HTTP, read by a parser that we did not write: every record once and in order, however often the
 * connection is lost; and who does not read is cut off.
 */
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { newToken, writeTokens } from '@coxswain/gateway';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isEnd, readEvents, readInPieces } from './kit/event-stream.ts';
import { busAndHost } from './kit/fixture.ts';
import { clientOf, type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { scratchFolder } from './kit/scratch.ts';
import { manyTurns, scripted } from './kit/scripts.ts';
import { startHost } from './kit/sessions-host.ts';
import { until } from './kit/until.ts';

/** How many follow one session, and how often each loses its connection; gateway-watchers.test.ts has many more. */
const WATCHERS = 20;
const DISCONNECTS = 5;

const fixture = busAndHost();
let gateway: GatewayUnderTest;
let second: GatewayUnderTest;

beforeAll(async () => {
  gateway = await startGateway(fixture.bus);
  second = await startGateway(fixture.bus);
});
afterAll(async () => {
  await gateway?.stop();
  await second?.stop();
});

async function started(turns: Parameters<typeof scripted>[0]): Promise<string> {
  const { status, body } = await gateway.post('/v1/sessions?wait=accepted', {
    prompt: 'go',
    model: await scripted(turns),
    permissions: { rules: [{ tool: 'run_command', action: 'allow' }] },
    root: await scratchFolder('root'),
  });
  expect(status).toBe(202);
  return body.session_id as string;
}

test('an event source sees the journal, then what comes, with pieces of answers between', async () => {
  const id = await started([{ text: 'one two three four five six', chunk_ms: 300 }]);
  const seen = await readEvents(gateway, `/v1/sessions/${id}/events`, undefined, isEnd);
  const records = seen.filter(({ event }) => event === 'record');
  expect(records.map(({ id: n }) => Number(n))).toEqual(records.map((_, i) => i + 1));
  const deltas = seen.filter(({ event }) => event === 'delta');
  expect(deltas.length).toBeGreaterThan(0);
  expect(deltas.every(({ id: n }) => n === undefined)).toBe(true);
  const page = await gateway.get(`/v1/sessions/${id}/events`);
  expect(records.map(({ data }) => JSON.parse(data))).toEqual(page.body.records);
  expect(page.body).toMatchObject({ next_from: records.length + 1, more: false });
  const none = await readEvents(gateway, `/v1/sessions/${id}/events?deltas=false&from=2`, undefined, isEnd);
  expect(none.map(({ id: n }) => Number(n))).toEqual(records.slice(1).map(({ id: n }) => Number(n)));
});

test('pages follow one another', async () => {
  const id = await started([{ text: 'short' }]);
  await readEvents(gateway, `/v1/sessions/${id}/events`, undefined, isEnd);
  const all: unknown[] = [];
  let from = 1;
  for (let more = true; more; ) {
    const { body } = await gateway.get(`/v1/sessions/${id}/events?from=${from}&limit=1`);
    all.push(...(body.records as unknown[]));
    from = body.next_from as number;
    more = body.more as boolean;
  }
  expect(all).toEqual((await gateway.get(`/v1/sessions/${id}/events`)).body.records);
  expect(await gateway.get(`/v1/sessions/${id}/events?from=${from}`)).toMatchObject({
    status: 200,
    body: { records: [] },
  });
});

test('many watchers, each disconnected at random: each sees every record exactly once and in order', async () => {
  const id = await started(manyTurns(25));
  // Some come back to another gateway: none of them keeps anything.
  const watch = (watcher: number) =>
    readInPieces((left) => ((watcher + left) % 3 === 0 ? second : gateway), `/v1/sessions/${id}/events`, DISCONNECTS);
  const all = await Promise.all(Array.from({ length: WATCHERS }, (_, i) => watch(i)));
  const { body } = await gateway.get(`/v1/sessions/${id}/events?limit=1000`);
  const expected = (body.records as { n: number }[]).map(({ n }) => n);
  expect(expected.length).toBeGreaterThan(50);
  for (const numbers of all) expect(numbers).toEqual(expected);
});

test.each([
  ['x', 'last-event-id'],
  ['-1', 'last-event-id'],
  ['1e3', 'last-event-id'],
])('a last event that was never sent is refused: %s', async (lastEventId, field) => {
  const id = await started([{ text: 'short' }]);
  const answer = await gateway.send('GET', `/v1/sessions/${id}/events`, undefined, {
    accept: 'text/event-stream',
    'last-event-id': lastEventId,
  });
  expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_field', field } });
});

test('who never reads is cut off, and the others see all', async () => {
  const own = await startGateway(fixture.bus, { times: { stallMs: 1_000 } });
  try {
    const long = { text: 'x'.repeat(200_000), calls: [{ tool: 'run_command', args: { command: 'true' } }] };
    const id = await started([...Array.from({ length: 60 }, () => long), { text: 'done' }]);
    const socket = connectSocket({ port: own.port, host: '127.0.0.1' });
    let cut = false;
    socket.once('close', () => {
      cut = true;
    });
    socket.on('error', () => undefined);
    socket.pause();
    socket.write(
      `GET /v1/sessions/${id}/events HTTP/1.1\r\nhost: 127.0.0.1:${own.port}\r\nauthorization: Bearer ${own.token}\r\n` +
        'accept: text/event-stream\r\n\r\n',
    );
    const seen = await readEvents(own, `/v1/sessions/${id}/events?deltas=false`, undefined, isEnd);
    expect(seen.map(({ id: n }) => Number(n))).toEqual(seen.map((_, i) => i + 1));
    await until('the end of who does not read', async () => {
      const metrics = await (await own.raw('/metrics')).text();
      return /coxswain_gateway_watchers_cut_off_total\{kind="sse"\} 1/.test(metrics);
    });
    // What the kernel holds is read before the end is seen.
    socket.resume();
    await until('the end of the connection', () => cut);
  } finally {
    await own.stop();
  }
});

test('a gateway that stops tells who watches; another one goes on where it was', async () => {
  const own = await startGateway(fixture.bus);
  const id = await started([
    { text: 'first', calls: [{ tool: 'run_command', args: { command: 'sleep 1' } }] },
    { text: 'done' },
  ]);
  const path = `/v1/sessions/${id}/events?deltas=false`;
  let stopped: Promise<void> | undefined;
  const before = await readEvents(own, path, undefined, () => {
    stopped ??= own.stop();
    return false;
  });
  await stopped;
  expect(before.at(-1)).toMatchObject({ event: 'problem' });
  expect(JSON.parse(before.at(-1)?.data ?? '{}')).toMatchObject({ code: 'gateway_stopping', status: 503 });
  const records = before.filter(({ event }) => event === 'record');
  const after = await readEvents(second, path, records.at(-1)?.id, isEnd);
  const numbers = [...records, ...after].map(({ id: n }) => Number(n));
  expect(numbers).toEqual(numbers.map((_, i) => i + 1));
});

test('a host that dies and another that goes on change nothing for who watches', async () => {
  const id = await started(manyTurns(8));
  const seen = readEvents(gateway, `/v1/sessions/${id}/events?deltas=false`, undefined, isEnd);
  await until(
    'some records',
    async () => ((await gateway.get(`/v1/sessions/${id}/events`)).body.records as []).length > 4,
  );
  await fixture.host.kill();
  fixture.host = await startHost(fixture.bus);
  const numbers = (await seen).map(({ id: n }) => Number(n));
  expect(numbers).toEqual(numbers.map((_, i) => i + 1));
});

test('a token that is taken back ends what it watches', async () => {
  const tokensFile = join(await scratchFolder('tokens'), 'tokens.json');
  const { token, stored } = newToken({
    name: 'guest',
    tenant: 'default',
    scopes: ['read'],
    created_at: new Date().toISOString(),
  });
  await writeTokens(tokensFile, [stored]);
  const own = await startGateway(fixture.bus, { tokensFile, times: { recheckMs: 100 } });
  try {
    const id = await started([{ calls: [{ tool: 'run_command', args: { command: 'sleep 30' } }] }, { text: 'done' }]);
    let taken = false;
    const seen = await readEvents(
      { ...own, ...clientOf(own.url, token) },
      `/v1/sessions/${id}/events`,
      undefined,
      () => {
        if (!taken) void writeTokens(tokensFile, []);
        taken = true;
        return false;
      },
    );
    expect(seen.at(-1)?.event).toBe('problem');
    expect(JSON.parse(seen.at(-1)?.data ?? '{}')).toMatchObject({ code: 'unauthorized', status: 401 });
    await gateway.post(`/v1/sessions/${id}/cancel?wait=accepted`);
  } finally {
    await own.stop();
  }
});

test('only so many may watch one session', async () => {
  const own = await startGateway(fixture.bus, { feedBounds: { perSession: 1, lingersMs: 0 } });
  try {
    const id = await started([{ text: 'short' }]);
    const path = `/v1/sessions/${id}/events`;
    const first = new AbortController();
    const watching = await own.raw(path, { headers: { accept: 'text/event-stream' }, signal: first.signal });
    expect(watching.status).toBe(200);
    const second = await own.send('GET', path, undefined, { accept: 'text/event-stream' });
    expect(second).toMatchObject({ status: 429, body: { code: 'too_many_watchers' } });
    first.abort();
    await until('the place to be free', async () => {
      const again = new AbortController();
      const answer = await own.raw(path, { headers: { accept: 'text/event-stream' }, signal: again.signal });
      again.abort();
      return answer.status === 200;
    });
  } finally {
    await own.stop();
  }
});
