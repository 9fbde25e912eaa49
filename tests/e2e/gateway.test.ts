/** The gateway over HTTP, on a real server with a session host: sessions, commands, what is refused. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newToken, type Scope, writeTokens } from '@coxswain/gateway';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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

async function quick() {
  return { prompt: 'go', model: await scripted([{ text: 'quick' }, { text: 'again' }]) };
}

async function asks() {
  const model = await scripted([
    { calls: [{ tool: 'write_file', args: { path: 'a.txt', content: 'a' } }] },
    { text: 'done' },
  ]);
  return { prompt: 'go', model, root: await scratchFolder('root') };
}

async function slow() {
  const model = await scripted([
    { calls: [{ tool: 'run_command', args: { command: 'sleep 30' } }] },
    { text: 'heard' },
  ]);
  const permissions = { rules: [{ tool: 'run_command', action: 'allow' }] };
  return { prompt: 'go', model, permissions, root: await scratchFolder('root') };
}

async function ended(id: string) {
  return until(`the end of ${id}`, async () => {
    const { body } = await gateway.get(`/v1/sessions/${id}`);
    return ['stopped', 'failed'].includes(body.state as string) ? body : null;
  });
}

test('a session is started, looked at, prompted again and exported', async () => {
  const started = await gateway.post('/v1/sessions', await quick());
  expect(started).toMatchObject({ status: 202, body: { duplicate: false, receipt: { stage: 'accepted', n: 1 } } });
  const id = started.body.session_id as string;
  expect(started.headers.get('location')).toBe(`/v1/sessions/${id}`);
  expect(await ended(id)).toMatchObject({ session_id: id, run: 1, stop_reason: 'end_turn' });
  expect(await gateway.post(`/v1/sessions/${id}/prompt?wait=accepted`, { body: 'more' })).toMatchObject({
    status: 202,
  });
  await until('the second run', async () => (await ended(id)).run === 2);
  const exported = await gateway.raw(`/v1/sessions/${id}/export`);
  expect(exported.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8');
  const lines = (await exported.text()).trimEnd().split('\n');
  const records = [];
  for await (const { bytes } of fixture.bus.client.session(id).journal()) records.push(Buffer.from(bytes).toString());
  // The last line ends the export.
  expect(lines.slice(0, -1)).toEqual(records);
});

test('the token determines the actor, whatever a body says', async () => {
  const { body } = await gateway.post('/v1/sessions?wait=accepted', await quick());
  const id = body.session_id as string;
  const lied = await gateway.post(`/v1/sessions/${id}/steer`, { body: 'x', actor: 'mallory' });
  expect(lied).toMatchObject({ status: 400, body: { code: 'unknown_field', field: 'actor' } });
  const [first] = (await gateway.get(`/v1/sessions/${id}/events`)).body.records as { input: { actor: unknown } }[];
  expect(first?.input.actor).toMatchObject({ name: 'tester' });
});

test('what waits is replaced and revoked', async () => {
  const { body } = await gateway.post('/v1/sessions?wait=accepted', await slow());
  const id = body.session_id as string;
  const steer = await gateway.post(`/v1/sessions/${id}/followup?wait=accepted`, 'as plain text', {
    'content-type': 'text/plain',
  });
  const waits = steer.body.command_id as string;
  const replaced = await gateway.send('PUT', `/v1/sessions/${id}/pending/${waits}?wait=accepted`, { body: 'better' });
  expect(replaced).toMatchObject({ status: 202 });
  expect((await gateway.get(`/v1/sessions/${id}/pending`)).body.pending).toMatchObject([
    { command_id: waits, body: 'better' },
  ]);
  expect(await gateway.send('DELETE', `/v1/sessions/${id}/pending/${waits}?wait=accepted`)).toMatchObject({
    status: 202,
  });
  expect((await gateway.get(`/v1/sessions/${id}/pending`)).body.pending).toEqual([]);
  const again = await gateway.send('DELETE', `/v1/sessions/${id}/pending/${waits}?wait=accepted`);
  expect(again).toMatchObject({ status: 409, body: { code: 'already_revoked' } });
  expect(await gateway.post(`/v1/sessions/${id}/cancel?wait=accepted`)).toMatchObject({ status: 202 });
  expect(await ended(id)).toMatchObject({ stop_reason: 'cancelled' });
});

test('a call is approved with other arguments; a second decision is refused', async () => {
  const { body } = await gateway.post('/v1/sessions?wait=accepted', await asks());
  const id = body.session_id as string;
  const status = await until('the approval', async () => {
    const { body: now } = await gateway.get(`/v1/sessions/${id}`);
    return (now.approvals as unknown[]).length > 0 ? now : null;
  });
  const [{ call_id } = { call_id: '' }] = status.approvals as { call_id: string }[];
  const path = `/v1/sessions/${id}/approvals/${call_id}`;
  const twice = await gateway.post(path, { call_id, decision: 'allow' });
  expect(twice).toMatchObject({ status: 400, body: { code: 'unknown_field', field: 'call_id' } });
  const args = { path: 'b.txt', content: 'b' };
  expect(await gateway.post(`${path}?wait=accepted`, { decision: 'allow', args })).toMatchObject({ status: 202 });
  await ended(id);
  const late = await gateway.post(`${path}?wait=accepted`, { decision: 'deny' });
  expect(late).toMatchObject({ status: 409 });
  expect(['not_pending', 'already_decided']).toContain(late.body.code);
});

test('what waits for a person is listed across sessions, the longest first, page by page', async () => {
  const ids: string[] = [];
  for (let i = 0; i < 2; i++) {
    const { body } = await gateway.post('/v1/sessions?wait=accepted', await asks());
    const id = body.session_id as string;
    ids.push(id);
    await until(
      'the approval',
      async () => ((await gateway.get(`/v1/sessions/${id}`)).body.approvals as []).length > 0,
    );
  }
  const first = await gateway.get('/v1/approvals?limit=1');
  expect(first).toMatchObject({ status: 200, body: { approvals: [{ session_id: ids[0], tool: 'write_file' }] } });
  const second = await gateway.get(`/v1/approvals?limit=1&cursor=${first.body.next_cursor}`);
  expect(second.body).toMatchObject({ approvals: [{ session_id: ids[1] }], next_cursor: null });
  expect(await gateway.get('/v1/approvals?cursor=bm9uZQ')).toMatchObject({ status: 400, body: { field: 'cursor' } });
  for (const id of ids) {
    await gateway.post(`/v1/sessions/${id}/cancel?wait=accepted`);
    await ended(id);
  }
  expect((await gateway.get('/v1/approvals')).body).toEqual({ approvals: [], next_cursor: null });
});

test('a session is suspended, given a signal, resumed; forked, deleted', async () => {
  const { body } = await gateway.post('/v1/sessions?wait=accepted', await quick());
  const id = body.session_id as string;
  await ended(id);
  expect(await gateway.post(`/v1/sessions/${id}/suspend?wait=accepted`)).toMatchObject({
    status: 409,
    body: { code: 'not_running' },
  });
  const forked = await gateway.post(`/v1/sessions/${id}/fork?wait=accepted`, { at: 1, session_id: `${id}-fork` });
  expect(forked).toMatchObject({ status: 202, body: { session_id: `${id}-fork`, n: 1 } });
  await ended(`${id}-fork`);
  const tree = await gateway.get(`/v1/sessions/${id}/tree`);
  expect(tree.body).toMatchObject({ parent: null, top: { session_id: id, children: [] }, left_out: 0 });
  const chart = await gateway.get(`/v1/sessions/${id}/statechart`);
  expect(chart.body).toMatchObject({
    machine: { id: 'session', root: { path: '', initial: 'stopped' } },
    active: 'stopped',
  });
  expect(await gateway.send('DELETE', `/v1/sessions/${id}?wait=accepted`, { reason: 'done' })).toMatchObject({
    status: 202,
  });
  expect(await gateway.get(`/v1/sessions/${id}/statechart`)).toMatchObject({
    status: 410,
    body: { code: 'session_deleted' },
  });
});

test('sessions are listed page by page, by state and by persona', async () => {
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    const persona = { name: i === 1 ? 'reviewer' : 'writer', model: (await quick()).model };
    const { body } = await gateway.post('/v1/sessions?wait=accepted', { prompt: 'go', persona });
    ids.push(body.session_id as string);
    await ended(body.session_id as string);
  }
  const listed: string[] = [];
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? '' : `&cursor=${cursor}`;
    const { status, body } = await gateway.get(`/v1/sessions?limit=2${query}`);
    expect(status).toBe(200);
    listed.push(...(body.sessions as { session_id: string }[]).map(({ session_id }) => session_id));
    cursor = body.next_cursor as string | null;
  } while (cursor !== null);
  // The last page repeats a session that has left memory meanwhile.
  expect([...new Set(listed)].slice(0, 3)).toEqual(ids.toReversed());
  const reviewers = (await gateway.get('/v1/sessions?persona=reviewer&state=stopped')).body.sessions;
  expect(reviewers).toMatchObject([{ session_id: ids[1], details: { persona: 'reviewer' } }]);
  expect((await gateway.get('/v1/sessions?state=assistant_streaming')).body.sessions).toEqual([]);
  expect(await gateway.get('/v1/sessions?cursor=bm9uZQ')).toMatchObject({ status: 400, body: { field: 'cursor' } });
});

describe('idempotency keys', () => {
  test('the same start under the same key is one session; another start under it is refused', async () => {
    const start = await quick();
    const key = { 'idempotency-key': 'order-17' };
    const first = await gateway.post('/v1/sessions?wait=accepted', start, key);
    const second = await gateway.post('/v1/sessions?wait=accepted', start, key);
    expect(second).toMatchObject({
      status: 202,
      body: { session_id: first.body.session_id, command_id: first.body.command_id },
    });
    const other = await gateway.post('/v1/sessions?wait=accepted', { ...start, prompt: 'other' }, key);
    expect(other).toMatchObject({ status: 422, body: { code: 'idempotency_key_reused' } });
    await ended(first.body.session_id as string);
    const fork = `/v1/sessions/${first.body.session_id}/fork?wait=accepted`;
    const forkKey = { 'idempotency-key': 'fork-1' };
    const [one, two] = [await gateway.post(fork, { at: 1 }, forkKey), await gateway.post(fork, { at: 1 }, forkKey)];
    expect(two).toMatchObject({ status: 202, body: { session_id: one.body.session_id } });
    expect(await gateway.post(fork, { at: 2 }, forkKey)).toMatchObject({ status: 422 });
    await ended(one.body.session_id as string);
  });

  test('the same follow-up under the same key is one message', async () => {
    const { body } = await gateway.post('/v1/sessions?wait=accepted', await slow());
    const id = body.session_id as string;
    const key = { 'idempotency-key': 'followup-1' };
    for (let i = 0; i < 3; i++) await gateway.post(`/v1/sessions/${id}/followup?wait=accepted`, { body: 'once' }, key);
    const other = await gateway.post(`/v1/sessions/${id}/followup`, { body: 'twice' }, key);
    expect(other).toMatchObject({ status: 422, body: { code: 'idempotency_key_reused' } });
    expect((await gateway.get(`/v1/sessions/${id}/pending`)).body.pending).toHaveLength(1);
    await gateway.post(`/v1/sessions/${id}/cancel?wait=accepted`);
    await ended(id);
  });
});

test('a command_id repeats its own command, and no other', async () => {
  const start = { ...(await slow()), session_id: 'own-ids', command_id: 'start-1' };
  const begin = (more: object = {}) => gateway.post('/v1/sessions', { ...start, ...more });
  expect(await begin()).toMatchObject({ status: 202, body: { duplicate: false } });
  expect(await begin()).toMatchObject({ status: 202, body: { duplicate: true } });
  expect(await begin({ prompt: 'other' })).toMatchObject({
    status: 422,
    body: { code: 'command_id_reused', field: 'command_id' },
  });
  const later = (body: string) =>
    gateway.post('/v1/sessions/own-ids/followup?wait=accepted', { body, command_id: 'later-1' });
  expect((await later('once')).body).toMatchObject({ duplicate: false });
  expect((await later('once')).body).toMatchObject({ duplicate: true });
  expect(await later('twice')).toMatchObject({ status: 422, body: { code: 'command_id_reused' } });
  await gateway.post('/v1/sessions/own-ids/cancel?wait=accepted');
  await ended('own-ids');
});

describe('what is wrong is told', () => {
  test.each([
    ['POST', '/v1/sessions', { promt: 'x' }, 400, 'unknown_field', 'promt'],
    ['POST', '/v1/sessions', { prompt: 'x', model: 7 }, 400, 'invalid_field', 'model'],
    ['POST', '/v1/sessions', [], 400, 'invalid_field', 'body'],
    ['POST', '/v1/sessions?wiat=accepted', { prompt: 'x' }, 400, 'unknown_field', 'wiat'],
    ['POST', '/v1/sessions?wait=soon', { prompt: 'x' }, 400, 'invalid_field', 'wait'],
    ['POST', '/v1/sessions/none/steer', { body: 'x' }, 404, 'session_not_found', undefined],
    ['POST', '/v1/sessions/none/cancel', {}, 404, 'session_not_found', undefined],
    ['GET', '/v1/sessions/none', undefined, 404, 'session_not_found', undefined],
    ['GET', '/v1/sessions/none/events', undefined, 404, 'session_not_found', undefined],
    ['GET', '/v1/sessions/none/tree', undefined, 404, 'session_not_found', undefined],
    ['GET', '/v1/sessions/none/statechart', undefined, 404, 'session_not_found', undefined],
    ['GET', '/v1/sessions/none/export', undefined, 404, 'session_not_found', undefined],
    ['GET', '/v1/sessions/no*ne', undefined, 400, 'invalid_id', 'session_id'],
    ['GET', '/v1/sessions?limit=0', undefined, 400, 'invalid_field', 'limit'],
    ['GET', '/nowhere', undefined, 404, 'route_not_found', undefined],
    ['PATCH', '/v1/sessions', {}, 405, 'method_not_allowed', undefined],
  ])('%s %s', async (method, path, body, status, code, field) => {
    const answer = await gateway.send(method, path, body);
    expect(answer).toMatchObject({ status, body: { status, code, type: `urn:coxswain:problem:${code}` } });
    expect(answer.body.field).toBe(field);
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
  });

  test('a start whose model cannot be asked is rejected each time it is sent, and makes no session', async () => {
    const start = { prompt: 'x', model: 'nowhere/model' };
    const key = { 'idempotency-key': 'impossible' };
    for (let i = 0; i < 2; i++)
      expect(await gateway.post('/v1/sessions', start, key)).toMatchObject({
        status: 422,
        body: { code: 'provider_unknown', field: 'model', detail: expect.stringContaining('nowhere') },
      });
    const named = await gateway.post('/v1/sessions', { ...start, session_id: 'impossible' });
    expect(named).toMatchObject({ status: 422 });
    expect(await gateway.get('/v1/sessions/impossible')).toMatchObject({ status: 404 });
  });

  test('an unknown key is told with the one that was probably meant', async () => {
    const { body } = await gateway.post('/v1/sessions', { promt: 'x' });
    expect(body.detail).toContain('prompt');
  });

  test('a method that is not taken names those that are', async () => {
    const answer = await gateway.send('PATCH', '/v1/sessions', {});
    expect(answer.headers.get('allow')?.split(', ').sort()).toEqual(['GET', 'POST']);
  });

  test('a body that is too large, of another kind, or no JSON', async () => {
    const large = await gateway.post('/v1/sessions', { prompt: 'x'.repeat(300_000) });
    expect(large).toMatchObject({ status: 413, body: { code: 'body_too_large' } });
    const form = await gateway.post('/v1/sessions', 'prompt=x', {
      'content-type': 'application/x-www-form-urlencoded',
    });
    expect(form).toMatchObject({ status: 415, body: { code: 'unsupported_media_type' } });
    const text = await gateway.post('/v1/sessions', 'x', { 'content-type': 'text/plain' });
    expect(text).toMatchObject({ status: 415, body: { code: 'unsupported_media_type' } });
    const broken = await gateway.post('/v1/sessions', '{"prompt":', { 'content-type': 'application/json' });
    expect(broken).toMatchObject({ status: 400, body: { code: 'invalid_json' } });
  });
});

describe('who is let in', () => {
  let folder: string;
  let tokens: Record<string, string>;
  let guarded: GatewayUnderTest;
  const file = () => join(folder, 'tokens.json');

  beforeAll(async () => {
    folder = await scratchFolder('tokens');
    const made = (name: string, scopes: Scope[], tenant = 'default', expires_at?: string) =>
      newToken({ name, tenant, scopes, created_at: new Date().toISOString(), ...(expires_at ? { expires_at } : {}) });
    const all = {
      reader: made('reader', ['read']),
      runner: made('runner', ['run']),
      steerer: made('steerer', ['steer']),
      approver: made('approver', ['approve']),
      other: made('other', ['admin'], 'other'),
      over: made('over', ['admin'], 'default', '2020-01-01T00:00:00Z'),
    };
    tokens = Object.fromEntries(Object.entries(all).map(([name, { token }]) => [name, token]));
    await writeTokens(
      file(),
      Object.values(all).map(({ stored }) => stored),
    );
    guarded = await startGateway(fixture.bus, { tokensFile: file() });
  });
  afterAll(() => guarded?.stop());

  const as = (name: string) => ({ authorization: `Bearer ${tokens[name]}` });

  test('the file has no token in it', async () => {
    const text = await readFile(file(), 'utf8');
    for (const token of Object.values(tokens)) expect(text).not.toContain(token);
  });

  test('no token, a wrong one, one that is over', async () => {
    for (const headers of [
      { authorization: '' },
      { authorization: 'Bearer cox_wrong' },
      as('over'),
      { authorization: 'Basic eDp5' },
    ]) {
      const answer = await guarded.send('GET', '/v1/sessions', undefined, headers);
      expect(answer).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
      expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer /);
    }
  });

  test.each([
    ['reader', 'POST', '/v1/sessions', 'run'],
    ['reader', 'POST', '/v1/sessions/x/steer', 'steer'],
    ['runner', 'GET', '/v1/sessions', 'read'],
    ['runner', 'POST', '/v1/sessions/x/approvals/c', 'approve'],
    ['steerer', 'POST', '/v1/sessions/x/cancel', 'run'],
    ['approver', 'DELETE', '/v1/sessions/x', 'admin'],
    ['steerer', 'GET', '/v1/sessions/x/events', 'read'],
    ['steerer', 'GET', '/metrics', 'read'],
  ])('%s may not %s %s', async (name, method, path, scope) => {
    const answer = await guarded.send(method, path, method === 'POST' ? {} : undefined, as(name));
    expect(answer).toMatchObject({ status: 403, body: { code: 'scope_missing' } });
    expect(answer.body.detail).toContain(`scope ${scope}`);
  });

  test('who may prompt and not steer sends no prompt that may become a steer', async () => {
    const answer = await guarded.send(
      'POST',
      '/v1/sessions/x/prompt',
      { body: 'go', if_running: 'steer' },
      as('runner'),
    );
    expect(answer).toMatchObject({ status: 403, body: { code: 'scope_missing', field: 'if_running' } });
  });

  test('who may start and not approve starts nothing that allows calls by itself', async () => {
    const { body: one } = await gateway.post('/v1/sessions?wait=accepted', await quick());
    const id = one.session_id as string;
    await ended(id);
    const body = await quick();
    const persona = { name: 'clerk', prompt: 'You file.', permissions: { default: 'allow' } };
    const refused = async (path: string, sent: object, field: string) =>
      expect(await guarded.send('POST', path, sent, as('runner'))).toMatchObject({
        status: 403,
        body: { code: 'scope_missing', field, detail: expect.stringContaining('approve') },
      });
    const permissions = { rules: [{ tool: 'run_command', action: 'allow' }] };
    await refused('/v1/sessions', { ...body, permissions }, 'permissions.rules.0.action');
    await refused('/v1/sessions', { ...body, mcp_servers: { sea: { command: 'sh' } } }, 'mcp_servers.sea.command');
    const fork = `/v1/sessions/${id}/fork`;
    await refused(fork, { at: 1, changes: { persona } }, 'changes.persona.permissions.default');
    await refused(fork, { at: 1, changes: { verdicts: { '*': {} } } }, 'changes.verdicts');
    const asks = { ...body, permissions: { rules: [{ tool: '*', action: 'ask' }] } };
    const started = await guarded.send('POST', '/v1/sessions?wait=accepted', asks, as('runner'));
    expect(started).toMatchObject({ status: 202 });
    await ended(started.body.session_id as string);
  });

  test('another tenant’s session is not there', async () => {
    const { body } = await gateway.post('/v1/sessions?wait=accepted', await quick());
    const id = body.session_id as string;
    await ended(id);
    for (const path of ['', '/events', '/tree', '/export', '/statechart', '/pending'])
      expect(await guarded.send('GET', `/v1/sessions/${id}${path}`, undefined, as('other'))).toMatchObject({
        status: 404,
        body: { code: 'session_not_found' },
      });
    const steered = await guarded.send('POST', `/v1/sessions/${id}/steer`, { body: 'x' }, as('other'));
    expect(steered).toMatchObject({ status: 404 });
    expect((await guarded.send('GET', '/v1/sessions', undefined, as('other'))).body.sessions).toEqual([]);
  });

  test('a token that is taken out of the file lets nobody in any more', async () => {
    const stored = JSON.parse(await readFile(file(), 'utf8')) as { tokens: { name: string }[] };
    await writeFile(file(), JSON.stringify({ tokens: stored.tokens.filter(({ name }) => name !== 'reader') }));
    await until('the token to be refused', async () => {
      return (await guarded.send('GET', '/v1/sessions', undefined, as('reader'))).status === 401;
    });
    expect((await guarded.send('GET', '/v1/sessions', undefined, as('other'))).status).toBe(200);
  });

  test('whoever tries many tokens is slowed down', async () => {
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        guarded.send('GET', '/v1/sessions', undefined, { authorization: `Bearer cox_guess${i}` }),
      ),
    );
    const slowed = answers.filter(({ status }) => status === 429);
    expect(slowed.length).toBeGreaterThan(0);
    expect(slowed[0]?.body.code).toBe('rate_limited');
    expect(Number(slowed[0]?.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await guarded.send('GET', '/v1/sessions', undefined, as('other'))).status).toBe(200);
  });

  test('a page of another site, and a name that was made to lead here', async () => {
    const cross = await gateway.send('GET', '/v1/sessions', undefined, { origin: 'https://evil.example' });
    expect(cross).toMatchObject({ status: 403, body: { code: 'origin_not_allowed' } });
    const form = await gateway.send('POST', '/v1/sessions', 'x', { origin: 'null', 'content-type': 'text/plain' });
    expect(form).toMatchObject({ status: 403, body: { code: 'origin_not_allowed' } });
    const rebound = await gateway.byHost('rebound.example', '/v1/sessions');
    expect(rebound).toMatchObject({ status: 403, body: { code: 'host_not_allowed' } });
    const own = await gateway.send('GET', '/v1/sessions', undefined, { origin: gateway.url });
    expect(own.status).toBe(200);
  });
});

describe('what is asked of the service', () => {
  test('it lives, is ready, and counts', async () => {
    expect(await gateway.byHost('10.0.0.7', '/healthz')).toMatchObject({ status: 200, body: { status: 'ok' } });
    expect(await gateway.byHost('10.0.0.7', '/readyz')).toMatchObject({ status: 200 });
    const metrics = await (await gateway.raw('/metrics')).text();
    expect(metrics).toMatch(/coxswain_gateway_requests_total\{route="\/v1\/sessions",method="POST",status="202"\} \d/);
  });
});
