/** Commands in requests: the names of their ids, and how far a start is waited for. */
import {
  CommandRejectedError,
  ReceiptTimeoutError,
  type SendOptions,
  type SendStage,
  sessionIdOfMessage,
  type WireSentCommand,
} from '@coxswain/client';
import { CommandId, parseBody, type Verb } from '@coxswain/protocol';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { GatewayClient } from '../src/gateway-context.ts';
import { type AppOnNothing, appOnNothing } from './app-on-nothing.ts';

interface Sent {
  readonly session: string;
  readonly verb: Verb;
  readonly body: object;
  readonly options: SendOptions<SendStage>;
}

const STORED: WireSentCommand = { commandId: CommandId.parse('c-1'), seq: 7, duplicate: false };

let sent: Sent[] = [];
/** The inputs that the session has recorded. */
let recorded: object[] = [];
let answer: (sent: Sent) => Promise<WireSentCommand>;
let made: AppOnNothing;

beforeAll(async () => {
  const sessionOf = (id: string) => ({
    id,
    ref: { tenant: 'default', sessionId: id },
    lastNumber: async () => 3,
    async *journal() {
      for (const [at, input] of recorded.entries()) yield { record: { n: at + 1, input } };
    },
    wire: {
      send: (verb: Verb, body: object, options: Sent['options']) => {
        const one = { session: id, verb, body, options };
        sent.push(one);
        return answer(one);
      },
    },
  });
  made = await appOnNothing({ clientOf: () => ({ session: sessionOf }) as unknown as GatewayClient });
});
beforeEach(() => {
  sent = [];
  recorded = [];
  answer = async () => STORED;
});

async function ask(method: string, url: string, payload?: object, more: Record<string, string> = {}) {
  const headers = { host: 'gateway.test', authorization: made.authorization, ...more };
  const request = { method: method as 'POST', url, headers, ...(payload === undefined ? {} : { payload }) };
  const { statusCode: status, json } = await made.app.inject(request);
  return { status, body: json() };
}

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
  expect(sent).toMatchObject([{ verb, options: { id: 'mine' } }]);
  // What it changes keeps the name that it has on NATS.
  const target = verb === 'revoke' || verb === 'replace' ? { command_id: 'waits' } : {};
  expect(sent[0]?.body).toMatchObject(target);
  expect('command_id' in (sent[0]?.body ?? {})).toBe('command_id' in target);
});

test.each(IN_BODIES)('the name on NATS is rejected with the right one: %s %s', async (method, url, body) => {
  const { status, body: problem } = await ask(method, url, { ...body, id: 'mine' });
  expect({ status, ...problem }).toMatchObject({ status: 400, code: 'unknown_field', field: 'id' });
  expect(problem.detail).toContain('unknown field "id": over HTTP the command’s own id is "command_id"');
  const makesSession = url === '/v1/sessions' || url.endsWith('/fork');
  expect(problem.detail.includes('the session’s id is "session_id"')).toBe(makesSession);
  expect(sent).toEqual([]);
});

test('a start takes the session’s id as session_id', async () => {
  await ask('POST', '/v1/sessions', { prompt: 'go', model: 'm/m', session_id: 'mine' });
  expect(sent).toMatchObject([{ session: 'mine', body: { prompt: 'go', model: 'm/m' } }]);
});

test('a start under a message id has the session that follows from it, also next to an idempotency key', async () => {
  const receipt = {
    type: 'receipt',
    session_id: 's',
    command_id: 'c-1',
    stage: 'accepted',
    n: 1,
    duplicate: true,
  } as const;
  answer = async () => ({ ...STORED, duplicate: true, receipt });
  // Another start, and not one of this key: the session compares them.
  recorded = [{ type: 'command', verb: 'start', command_id: 'first', body: {} }];
  const body = { prompt: 'go', model: 'm/m', message_id: 'order 17' };
  for (const more of [{}, { command_id: 'mine' }])
    expect(await ask('POST', '/v1/sessions', { ...body, ...more }, { 'idempotency-key': 'k' })).toMatchObject({
      status: 202,
      body: { duplicate: true, receipt: { n: 1, duplicate: true } },
    });
  const session = await sessionIdOfMessage('order 17');
  expect(sent).toMatchObject([{ session, body }, { session }]);
  expect(await ask('POST', '/v1/sessions', { ...body, session_id: 'named' })).toMatchObject({
    body: { session_id: 'named' },
  });
});

test('a rejection names fields as the request does', async () => {
  const rejected = (field: string) => async () => {
    throw new CommandRejectedError('unknown_command_id', `${field}: is not known`, { field });
  };
  answer = rejected('id');
  expect((await ask('POST', '/v1/sessions/s/steer', { body: 'x', command_id: 'a b' })).body).toMatchObject({
    field: 'command_id',
    detail: 'command_id: is not known',
  });
  answer = rejected('command_id');
  expect((await ask('DELETE', '/v1/sessions/s/pending/none')).body).toMatchObject({
    field: 'target_command_id',
    detail: 'target_command_id: is not known',
  });
});

const REPEATED = IN_BODIES.filter(([, , , verb]) => verb !== 'delete').filter(([, url]) => !url.endsWith('/fork'));

test.each(REPEATED)('a command_id of another command is refused: %s %s', async (method, url, body, verb) => {
  answer = async (one) => ({ ...STORED, commandId: CommandId.parse(one.options.id ?? 'none'), duplicate: true });
  recorded = [{ type: 'command', verb: 'cancel', command_id: 'mine', body: {} }];
  expect(await ask(method, url, { ...body, command_id: 'mine' })).toMatchObject({
    status: 422,
    body: { code: 'command_id_reused', field: 'command_id' },
  });
  // The same command again is a duplicate.
  const parsed = parseBody(verb, sent[0]?.body);
  recorded = [{ type: 'command', verb, command_id: 'mine', body: parsed.ok ? parsed.body : {} }];
  expect(await ask(method, url, { ...body, command_id: 'mine' })).toMatchObject({
    status: 202,
    body: { command_id: 'mine', duplicate: true },
  });
});

test('?wait=outcome answers how the cancelling of a call ended, and goes with no other command', async () => {
  const cancellation = { outcome: 'already_cancelled', call_id: 'c1', tool: 'deploy', reason: null } as const;
  answer = async () => ({ ...STORED, cancellation });
  const { status, body } = await ask('POST', '/v1/sessions/s/calls/c1/cancel?wait=outcome', {});
  expect({ status, body }).toEqual({
    status: 202,
    body: { session_id: 's', command_id: 'c-1', seq: 7, duplicate: false, ...cancellation },
  });
  expect(sent).toMatchObject([{ verb: 'cancel_call', body: { call_id: 'c1' }, options: { wait: 'outcome' } }]);
  expect(await ask('POST', '/v1/sessions/s/cancel?wait=outcome', {})).toMatchObject({
    status: 400,
    body: { code: 'invalid_field', field: 'wait' },
  });
});

const STARTS = [
  ['a start', '/v1/sessions', { prompt: 'go', model: 'm/m' }],
  ['a fork', '/v1/sessions/s/fork', { at: 2 }],
] as const;

test.each(STARTS)('%s without ?wait= is rejected where the host rejects it', async (_what, url, body) => {
  answer = async () => {
    throw new CommandRejectedError('invalid_field', 'model: unknown provider nowhere', { field: 'model' });
  };
  expect(await ask('POST', url, body)).toMatchObject({ status: 400, body: { code: 'invalid_field', field: 'model' } });
  expect(sent).toMatchObject([{ options: { wait: 'accepted', timeoutMs: 5_000 } }]);
});

test.each(STARTS)('%s without ?wait= is stored where no host answers in time', async (_what, url, body) => {
  answer = async ({ session, options: { timeoutMs = 0 } }) => {
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
  expect(asked).toMatchObject({ status: 504, body: { code: 'receipt_timeout', command_id: 'c-1' } });
  expect(sent[1]).toMatchObject({ options: { wait: 'accepted', timeoutMs: 9 } });
});

test.each(STARTS)('%s with ?wait=stored waits for no host', async (_what, url, body) => {
  expect(await ask('POST', `${url}?wait=stored`, body)).toMatchObject({ status: 202, body: { seq: 7 } });
  expect(sent).toMatchObject([{ options: { wait: 'stored' } }]);
});
