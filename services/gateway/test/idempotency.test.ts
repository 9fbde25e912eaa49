/** Idempotency keys, and commands that the bus already contains. */
import { CommandId, ID_PATTERN } from '@coxswain/protocol';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ReadShares } from '../src/context/mod.ts';
import { appWithSessions, type Sent, Sessions, STORED } from './app-with-sessions.ts';

const HOLDERS = [
  { name: 'alice', tenant: 'default' },
  { name: 'bob', tenant: 'default' },
  { name: 'alice', tenant: 'other' },
].map((holder) => ({ ...holder, scopes: new Set(['admin' as const]), expiresAt: null }));

const reads = new ReadShares({ all: 1, waiting: 0 });
let made: Awaited<ReturnType<typeof appWithSessions>>;
let sessions: (typeof made)['sessions'];
beforeAll(async () => {
  made = await appWithSessions({
    // The token is the index of its holder.
    authenticator: { authenticate: async (token) => HOLDERS[Number(token)] ?? null },
    expensiveReads: reads,
  });
  ({ sessions } = made);
});
beforeEach(() => void Object.assign(sessions, new Sessions()));

/** Sends a request with a key. */
const ask = (url: string, body: object, key = 'k', holder = 0) =>
  made.ask('POST', url, body, { authorization: `Bearer ${holder}`, 'idempotency-key': key });

/** The ids of the command that a request sends. */
async function idsOf(...request: Parameters<typeof ask>) {
  expect((await ask(...request)).status).toBe(202);
  const { session, options } = sessions.sent.at(-1) as Sent;
  return { sessionId: session, commandId: options.id };
}

const START = { prompt: 'go', model: 'm/m' };

test('the same request with the same key gets the same valid ids', async () => {
  const ids = await idsOf('/v1/sessions', START);
  expect(await idsOf('/v1/sessions', START)).toEqual(ids);
  for (const id of Object.values(ids)) expect(id).toMatch(ID_PATTERN);
});

test('another start with the same key addresses the same session with another command id', async () => {
  const [one, other] = [await idsOf('/v1/sessions', START), await idsOf('/v1/sessions', { ...START, prompt: 'come' })];
  expect(other.sessionId).toBe(one.sessionId);
  expect(other.commandId).not.toBe(one.commandId);
});

test('of the session that a key addresses, a start reads only the first record', async () => {
  await idsOf('/v1/sessions', START);
  expect(sessions.buffered).toEqual([1]);
});

test('of the journal that may contain a repeated command, few records are buffered', async () => {
  sessions.answer = async () => ({ ...STORED, duplicate: true });
  await ask('/v1/sessions/s/cancel', { reason: 'go' });
  expect(sessions.buffered).toEqual([16]);
});

test('a repeated fork returns the record at which the first one forked, also if the session has further records', async () => {
  const fork = () => ask('/v1/sessions/s/fork', {});
  expect((await fork()).body.n).toBe(3);
  const { options } = sessions.sent.at(-1) as Sent;
  const copied_from = { how: 'fork', session: 's', n: 2, command_id: options.id };
  sessions.recorded = [{ type: 'command', verb: 'start', command_id: 'first', body: START, copied_from }];
  sessions.answer = async () => ({ ...STORED, commandId: CommandId.parse(options.id), duplicate: true });
  expect((await fork()).body).toMatchObject({ duplicate: true, n: 2 });
});

test('the command id depends on key and path, not on the body', async () => {
  const ofSteer = async (session: string, body: string) =>
    (await idsOf(`/v1/sessions/${session}/steer`, { body })).commandId;
  expect(await ofSteer('a', '1')).toBe(await ofSteer('a', '2'));
  expect(await ofSteer('a', '1')).not.toBe(await ofSteer('b', '1'));
});

test('the same key of another user or tenant gives other ids', async () => {
  const ids = [];
  for (const holder of HOLDERS.keys()) ids.push((await idsOf('/v1/sessions', START, 'k', holder)).sessionId);
  expect(new Set(ids).size).toBe(3);
});

test.each(['', ' ', 'a b', 'ü', 'x'.repeat(256)])('the key %j is rejected', async (key) => {
  expect(await ask('/v1/sessions', START, key)).toMatchObject({
    status: 400,
    body: { code: 'invalid_field', field: 'idempotency-key' },
  });
});

test('a body that is nested too deeply is rejected as invalid', async () => {
  const answer = await made.app.inject({
    method: 'POST',
    url: '/v1/sessions/s/signal',
    headers: {
      host: 'gateway.test',
      authorization: 'Bearer 0',
      'idempotency-key': 'k',
      'content-type': 'application/json',
    },
    payload: `{"name":"n","data":${'['.repeat(50_000)}${']'.repeat(50_000)}}`,
  });
  const detail = expect.stringContaining('nested too deep');
  expect(answer.json()).toMatchObject({ status: 400, code: 'invalid_field', field: 'body', detail });
});

describe('a cancel whose command id the bus already contains', () => {
  const cancelled = (command_id: string | undefined, reason: string, verb = 'cancel') => ({
    type: 'command',
    verb,
    command_id,
    body: { reason },
  });
  /** Sends a cancel to a session that has recorded this when it arrives. */
  const cancel = (record: (id: string | undefined) => object[]) => {
    sessions.answer = async ({ options }) => {
      sessions.recorded = record(options.id);
      return { ...STORED, duplicate: true };
    };
    return ask('/v1/sessions/s/cancel', { reason: 'go' });
  };

  test.each([
    ['the same command', (id?: string) => [cancelled(id, 'go')], 202, undefined],
    ['the command with another body', (id?: string) => [cancelled(id, 'stop')], 422, 'idempotency_key_reused'],
    ['another command', (id?: string) => [cancelled(id, 'go', 'suspend')], 422, 'idempotency_key_reused'],
  ])('is compared with the recorded one: %s', async (_what, record, status, code) => {
    const answer = await cancel(record);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
  });

  test('is undecided if no record has the id', async () => {
    const answer = await cancel(() => [cancelled('other', 'x')]);
    expect(answer).toMatchObject({
      status: 409,
      headers: { 'retry-after': '2' },
      body: { code: 'idempotency_key_undecided', field: 'idempotency-key', session_id: 's' },
    });
  });

  test('is also compared with records that follow, each read once', async () => {
    sessions.answer = async ({ options }) => {
      sessions.recorded = [cancelled('a', 'x'), cancelled('b', 'y')];
      sessions.recordedLater = [cancelled(options.id, 'stop')];
      return { ...STORED, duplicate: true };
    };
    const answer = await ask('/v1/sessions/s/cancel', { reason: 'go' });
    expect(answer).toMatchObject({ status: 422, body: { code: 'idempotency_key_reused' } });
    expect(sessions.followedFrom).toEqual([3]);
  });

  test('is rejected while too many journals are read', async () => {
    const release = await reads.acquire({ tenant: 'default', name: 'alice' });
    expect(await cancel((id) => [cancelled(id, 'go')])).toMatchObject({ status: 503, body: { code: 'gateway_busy' } });
    release();
  });

  test('under an id of its own passes without a record of it, and while too many journals are read', async () => {
    sessions.answer = async () => ({ ...STORED, duplicate: true });
    const own = () => made.ask('POST', '/v1/sessions/s/cancel', { command_id: 'c' }, { authorization: 'Bearer 0' });
    sessions.recorded = [cancelled('a', 'x')];
    expect(await own()).toMatchObject({ status: 202 });
    sessions.recorded = [cancelled('c', 'stop')];
    const release = await reads.acquire({ tenant: 'default', name: 'alice' });
    expect(await own()).toMatchObject({ status: 202 });
    release();
    expect(await own()).toMatchObject({ status: 422, body: { code: 'command_id_reused', session_id: 's' } });
  });
});
