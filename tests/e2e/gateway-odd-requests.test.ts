/** Requests that are nearly right, or sent to break something: each is told what is wrong with it, and by whom it can be mended. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { busAndHost } from './kit/fixture.ts';
import { type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();
let gateway: GatewayUnderTest;

beforeAll(async () => {
  gateway = await startGateway(fixture.bus);
});
afterAll(() => gateway?.stop());

async function ended(): Promise<string> {
  const model = await scripted([{ text: 'quick' }], { loop: true });
  const { body } = await gateway.post('/v1/sessions?wait=accepted', { prompt: 'go', model });
  const id = body.session_id as string;
  await until('the end', async () => (await gateway.get(`/v1/sessions/${id}`)).body.state === 'stopped');
  return id;
}

async function working(): Promise<string> {
  const { body } = await gateway.post('/v1/sessions?wait=accepted', {
    prompt: 'go',
    model: await scripted([{ calls: [{ tool: 'run_command', args: { command: 'sleep 30' } }] }, { text: 'heard' }]),
    permissions: { rules: [{ tool: 'run_command', action: 'allow' }] },
    root: await scratchFolder('root'),
  });
  return body.session_id as string;
}

/** So deep that whoever walks through it step by step falls. */
const DEEP = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;

test.each([{}, { 'idempotency-key': 'deep' }])('JSON without a ground is refused, and named (%j)', async (headers) => {
  const answer = await gateway.post('/v1/sessions', `{"prompt":"x","metadata":{"a":${DEEP}}}`, {
    'content-type': 'application/json',
    ...headers,
  });
  expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_field' } });
  expect(answer.body.detail).toContain('nested');
});

test('so it is over a WebSocket, which stays', async () => {
  const id = await ended();
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/v1/sessions/${id}/ws`, {
    headers: { authorization: `Bearer ${gateway.token}` },
  });
  const told: { type: string; ref?: number; problem?: { code: string; field: string } }[] = [];
  socket.on('message', (data) => told.push(JSON.parse(String(data))));
  try {
    await new Promise((resolve) => socket.once('open', resolve));
    socket.send(`{"type":"command","ref":1,"verb":"signal","body":{"name":"a","data":${DEEP}}}`);
    socket.send('{"type":"command","ref":2,"verb":"steer","body":{"body":"still there"}}');
    socket.send('{"type":"command","ref":3,"verb":"signal","body":{"name":"a","data":{"b":1e999}}}');
    await until('all answers', () => told.filter(({ ref }) => ref !== undefined).length === 3);
    expect(told.find(({ ref }) => ref === 3)?.problem).toMatchObject({ code: 'invalid_field', field: 'data.b' });
    expect(told.find(({ ref }) => ref === 1)?.problem).toMatchObject({ code: 'invalid_field', field: 'data' });
    expect(told.find(({ ref }) => ref === 2)?.type).toBe('sent');
  } finally {
    socket.terminate();
  }
});

test('a text that begins like JSON is JSON, as it is on the bus', async () => {
  const id = await working();
  const say = (text: string) =>
    gateway.post(`/v1/sessions/${id}/followup?wait=accepted`, text, { 'content-type': 'text/plain' });
  expect(await say('{"body":"later","dedupe_key":"k"}')).toMatchObject({ status: 202 });
  expect(await say(' {oops')).toMatchObject({ status: 400, body: { code: 'invalid_json', field: 'body' } });
  expect((await gateway.get(`/v1/sessions/${id}/pending`)).body.pending).toMatchObject([
    { body: 'later', dedupe_key: 'k' },
  ]);
  await gateway.post(`/v1/sessions/${id}/cancel?wait=accepted`);
});

test('another command right behind the first under its key is told from it, before that is recorded', async () => {
  const id = await working();
  const key = { 'idempotency-key': 'twins' };
  const [one, other] = await Promise.all([
    gateway.post(`/v1/sessions/${id}/followup`, { body: 'one' }, key),
    gateway.post(`/v1/sessions/${id}/followup`, { body: 'other' }, key),
  ]);
  expect([one, other].map(({ status }) => status).sort()).toEqual([202, 422]);
  // 202 says that the command is stored; a host takes it up a moment later.
  const pending = await until('the follow-up to be pending', async () => {
    const found = (await gateway.get(`/v1/sessions/${id}/pending`)).body.pending as { body: string }[];
    return found.length > 0 && found;
  });
  expect(pending.map(({ body }) => body)).toEqual([one.status === 202 ? 'one' : 'other']);
  await gateway.post(`/v1/sessions/${id}/cancel?wait=accepted`);
});

test('a list of a state that there is not says which there are', async () => {
  const answer = await gateway.get('/v1/sessions?state=running');
  expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_field', field: 'state' } });
  for (const state of ['assistant_streaming', 'suspended', 'stopped', 'deleted'])
    expect(answer.body.detail).toContain(state);
});

test('what is sent to a session that was just deleted is refused at once', async () => {
  const id = await ended();
  expect(await gateway.send('DELETE', `/v1/sessions/${id}?wait=accepted`)).toMatchObject({ status: 202 });
  expect(await gateway.post(`/v1/sessions/${id}/steer`, { body: 'x' })).toMatchObject({
    status: 410,
    body: { code: 'session_deleted' },
  });
});

test('what is sent to a session that was deleted through another gateway is refused, and not lost', async () => {
  const other = await startGateway(fixture.bus);
  try {
    const id = await ended();
    // So that it is known there.
    expect(await other.post(`/v1/sessions/${id}/followup`, { body: 'x' })).toMatchObject({ status: 202 });
    expect(await gateway.send('DELETE', `/v1/sessions/${id}?wait=accepted`)).toMatchObject({ status: 202 });
    const gone = { status: 410, body: { code: 'session_deleted' } };
    expect(await other.post(`/v1/sessions/${id}/followup`, { body: 'y' })).toMatchObject(gone);
    expect(await other.post(`/v1/sessions/${id}/prompt?wait=accepted`, { body: 'z' })).toMatchObject(gone);
  } finally {
    await other.stop();
  }
});

test('nor is one forked that was', async () => {
  const other = await startGateway(fixture.bus);
  try {
    const id = await ended();
    expect(await other.post(`/v1/sessions/${id}/followup`, { body: 'x' })).toMatchObject({ status: 202 });
    expect(await gateway.send('DELETE', `/v1/sessions/${id}?wait=accepted`)).toMatchObject({ status: 202 });
    expect(await other.post(`/v1/sessions/${id}/fork`, { at: 1 })).toMatchObject({
      status: 410,
      body: { code: 'session_deleted' },
    });
  } finally {
    await other.stop();
  }
});

test('a start under a key may name its command, and is the same the second time, however its members are ordered', async () => {
  const model = await scripted([{ text: 'quick' }]);
  for (const named of [{}, { command_id: 'first-order' }]) {
    const key = { 'idempotency-key': `order-${Object.keys(named).length}` };
    const first = await gateway.post('/v1/sessions?wait=accepted', { prompt: 'go', model, ...named }, key);
    const second = await gateway.post('/v1/sessions?wait=accepted', { ...named, model, prompt: 'go' }, key);
    expect(second).toMatchObject({ status: 202, body: { session_id: first.body.session_id } });
  }
});

test('a fork that cannot be is told by the field that the request has', async () => {
  const id = await ended();
  const answer = await gateway.post(`/v1/sessions/${id}/fork?wait=accepted`, { at: 9_000 });
  expect(answer).toMatchObject({ body: { field: 'at' } });
  expect(answer.status).toBeLessThan(500);
});

test('a verb that is nearly one is told with the one that was probably meant', async () => {
  expect(await gateway.post('/v1/sessions/x/steerr', { body: 'x' })).toMatchObject({
    status: 404,
    body: { code: 'unknown_command', field: 'verb', detail: expect.stringContaining('"steer"') },
  });
});

test.each(['abc', '0', '1.5', '1e3', '9007199254740993'])('a record that there cannot be: from=%s', async (from) => {
  const id = await ended();
  expect(await gateway.get(`/v1/sessions/${id}/events?from=${from}`)).toMatchObject({
    status: 400,
    body: { code: 'invalid_field', field: 'from', detail: expect.stringContaining('the number of a record') },
  });
});

test('what an address does not ask for is refused by name', async () => {
  const id = await ended();
  for (const path of ['', '/pending', '/tree', '/statechart'])
    expect(await gateway.get(`/v1/sessions/${id}${path}?verbose=1`), path).toMatchObject({
      status: 400,
      body: { code: 'unknown_field', field: 'verbose' },
    });
});

test('what is not taken as it is sent: packed bodies', async () => {
  expect(await gateway.post('/v1/sessions', { prompt: 'x' }, { 'content-encoding': 'gzip' })).toMatchObject({
    status: 415,
    body: { code: 'unsupported_media_type', field: 'content-encoding' },
  });
});

test('a name that is nearly the session’s is told with what was probably meant', async () => {
  const { body } = await gateway.post('/v1/sessions', { prompt: 'x', sesion_id: 'a' });
  expect(body).toMatchObject({ code: 'unknown_field', detail: expect.stringContaining('did you mean "session_id"?') });
});

test('probes may ask with HEAD', async () => {
  for (const path of ['/healthz', '/readyz']) expect((await gateway.raw(path, { method: 'HEAD' })).status).toBe(200);
});

test('a WebSocket begins at the newest record, too, and offers no field that it refuses', async () => {
  const id = await ended();
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/v1/sessions/${id}/ws?from=newest`, {
    headers: { authorization: `Bearer ${gateway.token}` },
  });
  const told: { type: string; n?: number; problem?: { detail: string; field: string } }[] = [];
  socket.on('message', (data) => told.push(JSON.parse(String(data))));
  try {
    await until('the newest record', () => told.length === 1);
    const newest = (await gateway.get(`/v1/sessions/${id}`)).body.n;
    expect(told[0]).toMatchObject({ type: 'record', n: newest });
    socket.send('{"type":"command","verb":"steer","body":{"body":"x","zz":1}}');
    socket.send('{"type":"command","verb":"steer","body":{"body":"x"},"timeout_ms":true}');
    await until('both answers', () => told.length === 3);
    expect(told[1]?.problem).toMatchObject({ field: 'zz', detail: expect.not.stringContaining('actor') });
    expect(told[2]?.problem).toMatchObject({ field: 'timeout_ms' });
  } finally {
    socket.terminate();
  }
});
