/** The text of an AG-UI request, and its answers to the interrupt of a suspended session. */
import { connect } from 'node:net';
import { expect, test, vi } from 'vitest';
import { commandOfMessage, createMessageIds, readRunInput } from '../src/agui/mod.ts';
import { type GatewayClient, ReadShares } from '../src/context/mod.ts';
import { Sessions } from './app-with-sessions.ts';
import { appWithoutBus, connected, SILENT } from './app-without-bus.ts';

/** An app with sessions that reject every command. */
async function appWithSession({
  wire = {},
  ...session
}: {
  readonly wire?: object;
  readonly [member: string]: unknown;
}) {
  const sessions = new Sessions();
  sessions.answer = () => Promise.reject(Object.assign(new Error('no further'), { code: 'not_running' }));
  const sessionOf = (id: string) => {
    const one = sessions.of(id);
    return Object.assign(one, session, { wire: { ...one.wire, ...wire } });
  };
  const made = await appWithoutBus({ clientOf: () => ({ session: sessionOf }) as unknown as GatewayClient });
  return { ...made, sessions };
}

const inputOf = (more: object) => ({ threadId: 't', runId: 'r', messages: [], ...more });
const context = [{ description: 'page', value: 'orders' }];
const fresh = await appWithSession({ newest: async () => null });

/** Posts a message to a new session. */
const post = (content: unknown, more: object = {}) =>
  fresh.app.inject({
    method: 'POST',
    url: '/v1/agui',
    headers: { host: 'gateway.test', authorization: fresh.authorization },
    payload: inputOf({ messages: [{ id: 'm', role: 'user', content }], ...more }),
  });

test.each([[' \n'], ['\u200b\u2060'], ['\u3164'], ['\u2800']])(
  'the invisible text %j is rejected as empty',
  async (text) => {
    for (const more of [{}, { context }])
      for (const content of [text, [{ type: 'text', text }]])
        expect((await post(content, more)).json()).toMatchObject({ status: 400, code: 'empty_body' });
  },
);

test('the context is appended to the message', async () => {
  await post('hi', { context });
  const prompt = expect.stringMatching(/^hi\n\n<context>\npage: orders/);
  expect(fresh.sessions.sent).toMatchObject([{ verb: 'start', body: { prompt } }]);
});

const never = { state: { approvals: [], suspended: null }, past: [] };
const before = { state: { approvals: [], suspended: null }, past: [{ type: 'suspended' }] };
const now = { state: { approvals: [], suspended: { reason: null } }, past: [] };

test.each([
  ['resolved', 'never', never, 'not_suspended', []],
  ['cancelled', 'never', never, 'not_suspended', []],
  ['resolved', 'before', before, 'internal', [{ verb: 'resume' }]],
  ['cancelled', 'before', before, 'internal', []],
  ['resolved', 'now', now, 'internal', [{ verb: 'resume' }]],
  ['cancelled', 'now', now, 'internal', []],
])('the answer %s to a session that was suspended %s', async (status, _when, { state, past }, code, commands) => {
  const { app, authorization, sessions } = await appWithSession({
    wire: { stateAfter: async () => state },
    async *journal() {
      yield { record: { events: past } };
    },
    // The look-up after the commands fails: these tests need no stream.
    lastNumber: vi
      .fn(async () => 1)
      .mockResolvedValueOnce(1)
      .mockRejectedValue(new Error('no further')),
  });
  const body = JSON.stringify(inputOf({ resume: [{ interruptId: 'suspended', status }] }));
  const head = `host: gateway.test\r\nauthorization: ${authorization}\r\ncontent-type: application/json\r\nconnection: close`;
  const answer = await connected(
    app,
    `POST /v1/agui HTTP/1.1\r\n${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  expect(answer).toContain(`"code":"${code}"`);
  expect(sessions.sent).toMatchObject(commands);
  await app.close();
});

test('the shared state follows each state of the session, and its queued messages', async () => {
  const record = (n: number, state: string, events: object[]) => ({
    ...{ v: 1, session_id: 't', n, at: '2026-01-01T00:00:00.000Z', input: { type: 'timer' }, state },
    events,
  });
  const first = record(1, 'function_execute', []);
  const later = [
    record(2, 'function_execute', [
      { type: 'control_outcome', control: 'revoke', command_id: 'c-2', status: 'revoked', target: 'c-1' },
    ]),
    record(3, 'steering_check', []),
    record(4, 'suspended', []),
  ];
  const status = (n: number) => ({
    ...{ session_id: 't', n, stop_reason: null, persona: null, model: 'm/m', run: 1, turn: 1, usage: {}, cost_usd: 0 },
    ...{ state: n === 4 ? 'suspended' : 'function_execute', approvals: [], suspended: null },
    pending: n === 1 ? [{ command_id: 'c-1', kind: 'steer', body: 'stop' }] : [],
  });
  const buffered: unknown[] = [];
  const { app, authorization } = await appWithSession({
    lastNumber: async () => 1,
    async *journal({ atOnce }: { readonly atOnce?: number }) {
      buffered.push(atOnce);
      yield { record: first };
    },
    async *records() {
      for (const one of [first, ...later]) yield { record: one };
    },
    wire: { stateAfter: async (n: number) => status(n) },
  });
  const body = JSON.stringify(inputOf({}));
  const head = `host: gateway.test\r\nauthorization: ${authorization}\r\ncontent-type: application/json\r\nconnection: close`;
  const answer = await connected(
    app,
    `POST /v1/agui HTTP/1.1\r\n${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  const deltas = [...answer.matchAll(/^data: (.*"STATE_DELTA".*)$/gm)].map(
    ([, data]) => JSON.parse(data as string).delta,
  );
  expect(buffered).toEqual([16]);
  expect(deltas).toEqual([
    [
      { op: 'replace', path: '/n', value: 2 },
      { op: 'replace', path: '/pending', value: [] },
    ],
    [
      { op: 'replace', path: '/n', value: 3 },
      { op: 'replace', path: '/state', value: 'steering_check' },
    ],
    [
      { op: 'replace', path: '/n', value: 4 },
      { op: 'replace', path: '/state', value: 'suspended' },
    ],
  ]);
  await app.close();
});

test('a client that leaves while its run waits for a read gives up its place', async () => {
  const sessions = new Sessions();
  const expensiveReads = new ReadShares({ all: 1, waiting: 1, waitsMs: 600_000 });
  const tester = { tenant: 'default', name: 'tester' };
  const queued = vi.spyOn(expensiveReads, 'run');
  const error = vi.fn();
  const { app, authorization } = await appWithoutBus({
    expensiveReads,
    log: { ...SILENT, error },
    clientOf: () => ({ session: (id: string) => sessions.of(id) }) as unknown as GatewayClient,
  });
  const release = await expensiveReads.acquire(tester);
  const url = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const body = JSON.stringify(inputOf({}));
  const socket = connect({ host: url.hostname, port: Number(url.port) });
  socket.write(
    `POST /v1/agui HTTP/1.1\r\nhost: gateway.test\r\nauthorization: ${authorization}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await vi.waitFor(() => expect(queued).toHaveBeenCalled(), { timeout: 20_000 });
  // The queue has one place.
  await expect(expensiveReads.acquire(tester)).rejects.toMatchObject({ code: 'gateway_busy' });
  socket.destroy();
  await expect(queued.mock.results[0]?.value).rejects.toMatchObject({ name: 'AbortError' });
  const next = expensiveReads.acquire(tester);
  release();
  (await next)();
  await app.close();
  expect(error).not.toHaveBeenCalled();
});

test('of the messages, only the ids of the newest 1,000 of users are kept', () => {
  const messages = Array.from({ length: 10_000 }, (_, at) => ({
    id: `m${at}`,
    role: at % 2 ? 'user' : 'assistant',
    content: 'x',
  }));
  const { known } = readRunInput(inputOf({ messages }));
  expect([known.size, known.has('m9999'), known.has('m9998'), known.has('m8001'), known.has('m7999')]).toEqual([
    1_000,
    true,
    false,
    true,
    false,
  ]);
});

test.each(['', '-p', '-q', '-f', '-f-p', '-f-q'])(
  'the command of a message is found with the suffix "%s"',
  (suffix) => {
    const messageOf = createMessageIds('s', new Set(['m']));
    expect(messageOf(`${commandOfMessage('s', 'm')}${suffix}`)).toBe('m');
  },
);

test.each(['-r', '-p-f', '-f-f', 'x'])('a command with the suffix "%s" is that of another client', (suffix) => {
  const id = `${commandOfMessage('s', 'm')}${suffix}`;
  expect(createMessageIds('s', new Set(['m']))(id)).toBe(`s:said:${id}`);
});
