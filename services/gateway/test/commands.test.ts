/** Commands over HTTP: names of ids, waiting for receipts, and repeated command ids. */
import { CommandRejectedError, ReceiptTimeoutError, sessionIdOfMessage } from '@coxswain/client';
import { CommandId, parseBody } from '@coxswain/protocol';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { createMetrics } from '../src/context/mod.ts';
import { appWithSessions, Sessions, STORED } from './app-with-sessions.ts';

let made: Awaited<ReturnType<typeof appWithSessions>>;
let sessions: (typeof made)['sessions'];
beforeAll(async () => {
  made = await appWithSessions();
  ({ sessions } = made);
});
beforeEach(() => void Object.assign(sessions, new Sessions()));

const ask = (...request: Parameters<(typeof made)['ask']>) => made.ask(...request);

const IN_BODIES = [
  ['POST', '/v1/sessions', { prompt: 'go', model: 'm/m' }, 'start'],
  ['POST', '/v1/sessions/s/fork', {}, 'start'],
  ['POST', '/v1/sessions/s/steer', { body: 'x' }, 'steer'],
  ['POST', '/v1/sessions/s/approvals/call', { decision: 'allow' }, 'approve'],
  ['DELETE', '/v1/sessions/s/pending/waits', {}, 'revoke'],
  ['PUT', '/v1/sessions/s/pending/waits', { body: 'x' }, 'replace'],
  ['DELETE', '/v1/sessions/s', {}, 'delete'],
] as const;

test.each(IN_BODIES)('the command’s own id is command_id: %s %s', async (method, url, body, verb) => {
  expect(await ask(method, url, { ...body, command_id: 'mine' })).toMatchObject({
    status: 202,
    body: { command_id: 'c-1', seq: 7 },
  });
  expect(sessions.sent).toMatchObject([{ verb, options: { id: 'mine' } }]);
  // What it changes keeps the name that it has on NATS.
  const target = verb === 'revoke' || verb === 'replace' ? { command_id: 'waits' } : {};
  expect(sessions.sent[0]?.body).toMatchObject(target);
  expect('command_id' in (sessions.sent[0]?.body ?? {})).toBe('command_id' in target);
});

test.each(IN_BODIES)('the name on NATS is rejected with the right one: %s %s', async (method, url, body) => {
  const { status, body: problem } = await ask(method, url, { ...body, id: 'mine' });
  expect({ status, ...problem }).toMatchObject({ status: 400, code: 'unknown_field', field: 'id' });
  expect(problem.detail).toContain('unknown field "id": over HTTP the command’s own id is "command_id"');
  const makesSession = url === '/v1/sessions' || url.endsWith('/fork');
  expect(problem.detail.includes('the session’s id is "session_id"')).toBe(makesSession);
  expect(sessions.sent).toEqual([]);
});

test('a start takes the session’s id as session_id', async () => {
  await ask('POST', '/v1/sessions', { prompt: 'go', model: 'm/m', session_id: 'mine' });
  expect(sessions.sent).toMatchObject([{ session: 'mine', body: { prompt: 'go', model: 'm/m' } }]);
});

test('a start with a message id addresses the session derived from it, also with an idempotency key', async () => {
  const receipt = {
    type: 'receipt',
    session_id: 's',
    command_id: 'c-1',
    stage: 'accepted',
    n: 1,
    duplicate: true,
  } as const;
  sessions.answer = async () => ({ ...STORED, duplicate: true, receipt });
  // Another start, and not one of this key: the session compares them.
  sessions.recorded = [{ type: 'command', verb: 'start', command_id: 'first', body: {} }];
  const body = { prompt: 'go', model: 'm/m', message_id: 'order 17' };
  for (const more of [{}, { command_id: 'mine' }])
    expect(await ask('POST', '/v1/sessions', { ...body, ...more }, { 'idempotency-key': 'k' })).toMatchObject({
      status: 202,
      body: { duplicate: true, receipt: { n: 1, duplicate: true } },
    });
  const session = await sessionIdOfMessage('order 17');
  expect(sessions.sent).toMatchObject([{ session, body }, { session }]);
  expect(await ask('POST', '/v1/sessions', { ...body, session_id: 'named' })).toMatchObject({
    body: { session_id: 'named' },
  });
});

test('a rejection names fields as the request does', async () => {
  const rejected = (field: string) => async () => {
    throw new CommandRejectedError('unknown_command_id', `${field}: is not known`, { field });
  };
  sessions.answer = rejected('id');
  expect((await ask('POST', '/v1/sessions/s/steer', { body: 'x', command_id: 'a b' })).body).toMatchObject({
    field: 'command_id',
    detail: 'command_id: is not known',
  });
  sessions.answer = rejected('command_id');
  expect((await ask('DELETE', '/v1/sessions/s/pending/none')).body).toMatchObject({
    field: 'target_command_id',
    detail: 'target_command_id: is not known',
  });
});

const REPEATED = IN_BODIES.filter(([, , , verb]) => verb !== 'delete').filter(([, url]) => !url.endsWith('/fork'));

test.each(REPEATED)('a command_id of another command is refused: %s %s', async (method, url, body, verb) => {
  sessions.answer = async (one) => ({
    ...STORED,
    commandId: CommandId.parse(one.options.id ?? 'none'),
    duplicate: true,
  });
  sessions.recorded = [{ type: 'command', verb: 'cancel', command_id: 'mine', body: {} }];
  expect(await ask(method, url, { ...body, command_id: 'mine' })).toMatchObject({
    status: 422,
    body: { code: 'command_id_reused', field: 'command_id' },
  });
  // The same command again is a duplicate, also with another trace.
  const parsed = parseBody(verb, sessions.sent[0]?.body);
  sessions.recorded = [
    { type: 'command', verb, command_id: 'mine', body: { ...(parsed.ok ? parsed.body : {}), trace: '00-1-2-01' } },
  ];
  expect(await ask(method, url, { ...body, command_id: 'mine' })).toMatchObject({
    status: 202,
    body: { command_id: 'mine', duplicate: true },
  });
});

test('?wait=outcome returns the outcome of cancelling a call, and is invalid for other commands', async () => {
  const cancellation = { outcome: 'already_cancelled', call_id: 'c1', tool: 'deploy', reason: null } as const;
  sessions.answer = async () => ({ ...STORED, cancellation });
  const { status, body } = await ask('POST', '/v1/sessions/s/calls/c1/cancel?wait=outcome', {});
  expect({ status, body }).toEqual({
    status: 202,
    body: { session_id: 's', command_id: 'c-1', seq: 7, duplicate: false, ...cancellation },
  });
  expect(sessions.sent).toMatchObject([{ verb: 'cancel_call', body: { call_id: 'c1' }, options: { wait: 'outcome' } }]);
  expect(await ask('POST', '/v1/sessions/s/cancel?wait=outcome', {})).toMatchObject({
    status: 400,
    body: { code: 'invalid_field', field: 'wait' },
  });
});

const STARTS = [
  ['a start', '/v1/sessions', { prompt: 'go', model: 'm/m' }],
  ['a fork', '/v1/sessions/s/fork', { at: 2 }],
] as const;

test.each(STARTS)('%s without ?wait= is rejected if the host rejects it', async (_what, url, body) => {
  sessions.answer = async () => {
    throw new CommandRejectedError('invalid_field', 'model: unknown provider nowhere', { field: 'model' });
  };
  expect(await ask('POST', url, body)).toMatchObject({ status: 400, body: { code: 'invalid_field', field: 'model' } });
  expect(sessions.sent).toMatchObject([{ options: { wait: 'accepted', timeoutMs: 5_000 } }]);
});

test.each(STARTS)('%s without ?wait= is stored if no host answers in time', async (_what, url, body) => {
  sessions.answer = async ({ session, options: { timeoutMs = 0 } }) => {
    throw new ReceiptTimeoutError({
      commandId: 'c-1',
      sessionId: session,
      awaited: 'accepted',
      waitedMs: timeoutMs,
      sent: STORED,
    });
  };
  const plain = await ask('POST', url, body);
  expect(plain).toMatchObject({ status: 202, body: { command_id: 'c-1', seq: 7, duplicate: false } });
  expect(plain.body).not.toHaveProperty('receipt');
  const asked = await ask('POST', `${url}?wait=accepted&timeout_ms=9`, body);
  expect(asked).toMatchObject({
    status: 504,
    body: {
      code: 'receipt_timeout',
      command_id: 'c-1',
      session_id: sessions.sent[1]?.session,
      detail: expect.stringMatching(/the command c-1 is stored, .* with the id c-1: it is applied once/),
    },
  });
  expect(sessions.sent[1]).toMatchObject({ options: { wait: 'accepted', timeoutMs: 9 } });
});

test.each(STARTS)('%s with ?wait=stored waits for no host', async (_what, url, body) => {
  expect(await ask('POST', `${url}?wait=stored`, body)).toMatchObject({ status: 202, body: { seq: 7 } });
  expect(sessions.sent).toMatchObject([{ options: { wait: 'stored' } }]);
});

test('a rejection with a code that this release does not know is counted as other', async () => {
  const metrics = createMetrics();
  const counting = await appWithSessions({ metrics });
  counting.sessions.answer = async () => {
    throw new CommandRejectedError('of_a_later_release', 'it is too late');
  };
  const { body } = await counting.ask('POST', '/v1/sessions/s/steer?wait=accepted', { body: 'x' });
  expect(body.code).toBe('of_a_later_release');
  expect(await metrics.registry.metrics()).toContain('coxswain_gateway_refused_total{code="other"} 1');
});
