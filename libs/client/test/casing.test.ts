/** Names at the edge of the client: camelCase in calls and results, snake_case on the way, and an unknown name is refused. */
import { sessionRef } from '@coxswain/protocol';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { BusSession } from '../src/bus-client.ts';
import type { BusTransport } from '../src/bus-transport.ts';
import { CallGuard } from '../src/call-guard.ts';
import { Closing } from '../src/closing.ts';
import {
  Client,
  CommandRejectedError,
  connect,
  defineTool,
  errorOnWire,
  Session,
  type SessionSettings,
  type SessionState,
  servePersona,
  serveTool,
  uiEventToWire,
} from '../src/mod.ts';
import { callOutcomeToWire } from '../src/send-call-outcome.ts';
import { sendJobReport } from '../src/send-job-report.ts';
import type { Transport } from '../src/transport.ts';

const USAGE = { input_tokens: 1, output_tokens: 2 };

/** A transport that writes down each command, and answers in the form of the wire. */
function wired(rejection?: CommandRejectedError) {
  const sent: unknown[][] = [];
  const listed = { session_id: 's', n: 1, at: '', state: 'stopped', stop_reason: 'end_turn' };
  const approval = { call_id: 'c', tool: 't', args: { file_path: 'a' }, requested_by: 'rule:*', since: '' };
  const node = { session_id: 's', call_id: null, state: { daemon_idle: 'waiting' }, usage: USAGE, cost_usd: 0 };
  const transport = {
    tenant: 'default',
    guard: new CallGuard(new Closing()),
    send: async ({ sessionId }: { sessionId: string }, verb: string, body: object, options: object) => {
      // Each call has a signal, which ends it when the client closes.
      const { signal: _, ...others } = options as { readonly signal?: AbortSignal };
      sent.push([verb, body, others]);
      if (rejection) throw rejection;
      const receipt = { type: 'receipt', session_id: sessionId, command_id: 'x', stage: 'accepted', n: 1 };
      const cancellation = { outcome: 'cancelled', call_id: 'c', tool: 't', reason: null };
      const remembered = { match: { kind: 'args', args: { file_path: 'a' } } };
      const detail = { revoked_by: 'r', remembered, purge: { records_within_ms: 1, files_within_ms: 2 } };
      return { commandId: 'x', seq: 1, duplicate: false, receipt: { ...receipt, detail }, cancellation };
    },
    state: async () => ({ session_id: 's', approvals: [approval], usage: USAGE, budgets: [] }),
    listSessions: async () => ({
      sessions: [{ ...listed, details: { cost_usd: 1, usage: USAGE } }],
      next_cursor: null,
    }),
    approvals: async () => [{ session_id: 's', persona: null, ...approval }],
    tree: async () => ({
      parent: null,
      top: { ...node, children: [{ ...node, children: [] }] },
      left_out: 2,
    }),
  } as unknown as Transport;
  return { sent, client: new Client(transport, (ref) => new Session(transport, ref)) };
}

test('settings and options are sent in the form of the wire; arguments and metadata stay as they are', async () => {
  const { client, sent } = wired();
  const metadata = { ticketId: 1, in_wire: 2 };
  const started = await client.startSession(
    { prompt: 'go', baseUrl: 'http://127.0.0.1', limits: { maxTurns: 3 }, metadata },
    { wait: 'accepted' },
  );
  await started.remind('x', { ttlTurns: 2, dedupeKey: 'k' });
  await started.approve('c', { args: { filePath: 'a', file_path: 'b' }, remember: 'session' });
  const cancelled = await started.cancelCall('c', { injectReminder: false, timeoutMs: 5 });
  await started.suspend({ forMs: 1, onTimeout: 'fail' });
  expect(sent).toEqual([
    ['start', { prompt: 'go', base_url: 'http://127.0.0.1', limits: { max_turns: 3 }, metadata }, { wait: 'accepted' }],
    ['remind', { body: 'x', ttl_turns: 2, dedupe_key: 'k' }, {}],
    [
      'approve',
      { call_id: 'c', decision: 'allow', args: { filePath: 'a', file_path: 'b' }, remember: 'session' },
      { wait: 'accepted' },
    ],
    ['cancel_call', { call_id: 'c', inject_reminder: false, timeout_ms: 5 }, { wait: 'outcome', timeoutMs: 30_005 }],
    ['suspend', { for_ms: 1, on_timeout: 'fail' }, {}],
  ]);
  expect(cancelled).toMatchObject({ outcome: 'cancelled', callId: 'c', sent: { receipt: { commandId: 'x' } } });
  expect(started.sent.receipt).toEqual({
    ...{ type: 'receipt', sessionId: started.id, commandId: 'x', stage: 'accepted', n: 1 },
    detail: {
      revokedBy: 'r',
      remembered: { match: { kind: 'args', args: { file_path: 'a' } } },
      purge: { recordsWithinMs: 1, filesWithinMs: 2 },
    },
  });
});

test('what sessions say of themselves has the names of TypeScript, and their data its own', async () => {
  const { client } = wired();
  const approval = { callId: 'c', tool: 't', args: { file_path: 'a' }, requestedBy: 'rule:*', since: '' };
  const usage = { inputTokens: 1, outputTokens: 2 };
  expect(await client.session('s').state()).toEqual({ sessionId: 's', approvals: [approval], usage, budgets: [] });
  for await (const listed of client.sessions())
    expect(listed).toMatchObject({ sessionId: 's', stopReason: 'end_turn', details: { costUsd: 1, usage } });
  for await (const pending of client.pendingApprovals()) {
    expect(pending).toMatchObject(approval);
    expect(pending.session.id).toBe('s');
  }
  expect.assertions(5);
  const node = { sessionId: 's', callId: null, state: { daemon_idle: 'waiting' }, usage, costUsd: 0 };
  expect(await client.session('s').tree()).toEqual({
    parent: null,
    top: { ...node, children: [{ ...node, children: [] }] },
    leftOut: 2,
  });
});

test.each<[option: string, call: (client: Client) => unknown]>([
  ['max_turns', (client) => client.startSession({ prompt: 'go', max_turns: 3 } as never)],
  ['limits.max_turns', (client) => client.startSession({ prompt: 'go', limits: { max_turns: 3 } } as never)],
  ['actor', (client) => client.startSession({ prompt: 'go', actor: 'me' } as never)],
  ['timeout_ms', (client) => client.startSession({ prompt: 'go' }, { timeout_ms: 1 } as never)],
  ['dedupe_key', (client) => client.session('s').steer('x', { dedupe_key: 'k' } as never)],
  ['waitt', (client) => client.session('s').cancel('x', { waitt: 'accepted' } as never)],
  ['sessionID', (client) => client.session('s').fork({ at: 1, sessionID: 'f' } as never)],
  ['for_ms', (client) => client.session('s').suspend({ for_ms: 1 } as never)],
  ['timeout_ms', (client) => client.session('s').state({ timeout_ms: 1 } as never)],
  ['timeoutMs', (client) => client.session('s').pending({ timeoutMs: -1 })],
  ['settings', (client) => client.startSession(undefined as never)],
  ['wait', (client) => client.session('s').say('x', { wait: 'acepted' } as never)],
  ['wait', (client) => client.startSession({ prompt: 'go' }, { wait: 'delivered' } as never)],
  ['timeoutMs', (client) => client.session('s').say('x', { wait: 'accepted', timeoutMs: -1 })],
  ['timeoutMs', (client) => client.session('s').say('x', { wait: 'accepted', timeoutMs: 2 ** 31 })],
  ['signal', (client) => client.session('s').say('x', { signal: 5 } as never)],
  ['options', (client) => client.session('s').deny('c', 'no' as never)],
  ['options', (client) => client.session('s').cancelCall('c', 'because' as never)],
  ['options', (client) => client.session('s').steer('x', 5 as never)],
  ['options', async (client) => client.sessions(5 as never)],
  ['options', async (client) => Reflect.apply(client.pendingApprovals, client, [{ foo: 1 }])],
  ['options', async () => connect('nats://x' as never)],
  ['mode', (client) => client.session('s').say('x', { mode: 'plan' } as never)],
  ['follow', async (client) => client.session('s').stream({ follow: 'yes' } as never)],
  ['sessionId', async (client) => client.session(undefined as never)],
  ['from', (client) => client.session('s').stream({ from: 0 }).next()],
  [
    'from',
    (client) =>
      client
        .session('s')
        .records({ from: 'newest' } as never)
        .next(),
  ],
  [
    'signal',
    (client) =>
      client
        .session('s')
        .approvals({ signal: 5 } as never)
        .next(),
  ],
  ['after', (client) => client.session('s').result({ after: 'x' } as never)],
  ['state', (client) => client.sessions({ state: 'runing' } as never).next()],
  ['limit', (client) => client.sessions({ limit: -1 }).next()],
  ['state_name', (client) => client.sessions({ state_name: 'stopped' } as never).next()],
  [
    'after',
    (client) =>
      client
        .session('s')
        .stream({ after: 1 } as never)
        .next(),
  ],
  [
    'delta',
    (client) =>
      client
        .session('s')
        .records({ delta: true } as never)
        .next(),
  ],
  ['timeoutMs', (client) => client.session('s').result({ timeoutMs: 1 } as never)],
])('an unknown option is refused before anything is sent: %s', async (option, call) => {
  const { client, sent } = wired();
  await expect(async () => call(client)).rejects.toMatchObject({ code: 'invalid_option', option });
  expect(sent).toEqual([]);
});

test('an unknown option of a connection is refused before anything is sent', async () => {
  const gateway = { gateway: 'https://gw.test', token: 'x', timeoutMs: 1 };
  await expect(connect(gateway as never)).rejects.toMatchObject({ code: 'invalid_option', option: 'timeoutMs' });
  const bus = { servers: 'nats://127.0.0.1:9', tenent: 'red' };
  await expect(connect(bus as never)).rejects.toMatchObject({ code: 'invalid_option', option: 'tenent' });
  const typo = { gatway: 'https://gw.test', token: 'x' };
  const message = 'the option gatway is unknown; did you mean gateway?';
  await expect(connect(typo as never)).rejects.toMatchObject({ option: 'gatway', message });
  const unset = { servers: undefined };
  await expect(connect(unset as never)).rejects.toThrow('servers is undefined');
});

test('the field of a rejection is named as the program has written it', async () => {
  const message = 'max_turns: must be at least 1';
  const { client } = wired(new CommandRejectedError('invalid_field', message, { field: 'max_turns' }));
  await expect(client.startSession({ prompt: 'go', maxTurns: 0 })).rejects.toMatchObject({
    code: 'invalid_field',
    field: 'maxTurns',
    message: 'maxTurns: must be at least 1',
  });
});

test('the detail of a rejection has the names of TypeScript, and its data its own', async () => {
  const detail = { retry_after_ms: 5, args: { file_path: 'a' } };
  const wire = new CommandRejectedError('quota_exceeded', 'too many', { detail });
  const { client } = wired(wire);
  const rejected: unknown = await client.startSession({ prompt: 'go' }).catch((error: unknown) => error);
  expect(rejected).toMatchObject({ detail: { retryAfterMs: 5, args: { file_path: 'a' } } });
  expect(errorOnWire(rejected)).toBe(wire);
});

test('a fork with a message id has an id that follows from it, and the same one when it is sent again', async () => {
  const { client, sent } = wired();
  const fork = () => client.session('s').fork({ at: 3, messageId: 'm' });
  const [first, second] = [await fork(), await fork()];
  expect(second.id).toBe(first.id);
  const body = { fork: { session: 's', n: 3 }, message_id: 'm' };
  expect(sent).toEqual([
    ['start', body, { wait: 'accepted' }],
    ['start', body, { wait: 'accepted' }],
  ]);
});

test('the end of a call is sent in the form of the wire, and its data keeps its names', () => {
  const detail = { exit_code: 2 };
  expect(callOutcomeToWire({ status: 'error', result: { content: [], isError: true, detail } })).toEqual({
    status: 'error',
    result: { content: [], is_error: true, detail },
  });
  const misspelt = { status: 'ok', result: { content: [], is_error: true } } as never;
  expect(() => callOutcomeToWire(misspelt)).toThrow('result.is_error is unknown; did you mean isError?');
});

test('a UI event has a form on the wire, for protocols that carry it as JSON', () => {
  const from = { n: 1, at: '' };
  const state = { daemon_idle: 'waiting' } as const;
  expect(uiEventToWire({ type: 'state_changed', state, ...from })).toEqual({ type: 'state_changed', state, ...from });
  const args = { filePath: 'a' };
  const call = { type: 'call_started', callId: 'c', tool: 't', args, summary: '', ...from } as const;
  const { callId: call_id, ...others } = call;
  expect(uiEventToWire(call)).toEqual({ ...others, call_id });
  const injections = [{ commandId: 'm', origin: 'steer', text: 'x' }] as const;
  const delivered = {
    type: 'seam_delivered',
    seam: 'post_compact',
    turn: 1,
    injections,
    skippedCallIds: ['c'],
  } as const;
  expect(uiEventToWire({ ...delivered, ...from })).toMatchObject({
    injections: [{ command_id: 'm', origin: 'steer', text: 'x' }],
    skipped_call_ids: ['c'],
  });
});

test('the report of a job is refused for a name that a job does not have, before anything is sent', async () => {
  const refused = (job: object) => sendJobReport({} as never, sessionRef('s'), { job: job as never });
  const named = (option: string, words: string) => ({
    code: 'invalid_option',
    option,
    message: `the option ${option} ${words}`,
  });
  await expect(refused({ job_id: 'j' })).rejects.toMatchObject(named('job.job_id', 'is unknown; did you mean jobId?'));
  await expect(refused({ jobId: 'j', retryHint: { retryable: true, after_ms: 1 } })).rejects.toMatchObject(
    named('job.retryHint.after_ms', 'is unknown; did you mean afterMs?'),
  );
});

test('an unknown option of serving is refused before anything is connected', async () => {
  const tool = defineTool({ name: 't', description: 'd', inputSchema: { type: 'object' }, execute: () => 'x' });
  const servers = 'nats://127.0.0.1:1';
  const serving = { servers, models: { check: async () => null, resolve: () => null } };
  const refused = { code: 'invalid_option', option: 'drain_ms' };
  await expect(serveTool(tool, { servers, drain_ms: 5 } as never)).rejects.toMatchObject(refused);
  await expect(servePersona({ name: 'p' }, { ...serving, drain_ms: 5 } as never)).rejects.toMatchObject(refused);
});

describe('bad arguments are refused by their names, before anything is sent', () => {
  const { client, sent } = wired();
  const session = client.session('s');
  const bus = new BusSession({ guard: new CallGuard(new Closing()) } as BusTransport, sessionRef('s'));
  // What a program in JavaScript can pass.
  const calls: [string, (options: never) => unknown][] = [
    ['startSession', (options) => client.startSession({ prompt: 'x' }, options)],
    ['sessions', (options) => client.sessions(options)],
    ['wire.listSessions', (options) => client.wire.listSessions(options)],
    ['prompt', (options) => session.prompt('x', options)],
    ['say', (options) => session.say('x', options)],
    ['remind', (options) => session.remind('x', options)],
    ['approve', (options) => session.approve('c', options)],
    ['cancelCall', (options) => session.cancelCall('c', options)],
    ['suspend', (options) => session.suspend({}, options)],
    ['fork', (options) => session.fork(options)],
    ['records', (options) => session.records(options)],
    ['stream', (options) => session.stream(options)],
    ['textStream', (options) => session.textStream(options)],
    ['approvals', (options) => session.approvals(options)],
    ['journal', (options) => session.journal(options)],
    ['journal over NATS', (options) => bus.journal(options)],
    ['export', (options) => session.export(options)],
    ['result', (options) => session.result(options)],
    ['state', (options) => session.state(options)],
    ['pending', (options) => session.pending(options)],
    ['wire.send', (options) => session.wire.send('cancel', {}, options)],
    ['endCall', (options) => bus.endCall({} as never, {} as never, options)],
    ['serveTool', (options) => serveTool({} as never, options)],
  ];
  const refusal = async (call: () => unknown) =>
    (async () => call())().then(
      () => 'accepted',
      (error: unknown) => error,
    );

  test.each(calls)('%s', async (_name, call) => {
    for (const options of [null, 5, []])
      expect(await refusal(() => call(options as never))).toMatchObject({ code: 'invalid_option', option: 'options' });
    expect(sent).toEqual([]);
  });

  test.each<[string, string, () => unknown]>([
    ['suspend(null)', 'options', () => session.suspend(null as never)],
    ['receiptOf(undefined)', 'commandId', () => session.receiptOf(undefined as never)],
    ['fork({ at: 0 })', 'at', () => session.fork({ at: 0 })],
    ['export({ recordsOnly: 1 })', 'recordsOnly', () => session.export({ recordsOnly: 1 as never })],
    ['sessions({ persona: 5 })', 'persona', () => client.sessions({ persona: 5 as never })],
    ["sessions({ details: 'yes' })", 'details', () => client.sessions({ details: 'yes' as never })],
    ...[null, 'x', Number.NaN, -1, 1.5, Number.POSITIVE_INFINITY].map((from): [string, string, () => unknown] => [
      `journal({ from: ${from} }) over NATS`,
      'from',
      () => bus.journal({ from: from as number }),
    ]),
    ['journal({ nope: 1 }) over NATS', 'nope', () => bus.journal({ nope: 1 } as never)],
  ])('%s', async (_call, option, call) => {
    expect(await refusal(call)).toMatchObject({ code: 'invalid_option', option });
    expect(sent).toEqual([]);
  });

  test('a record that does not exist is named as the option of fork()', async () => {
    const rejection = new CommandRejectedError('fork_record_not_found', 'there is no record 9', { field: 'fork.n' });
    const forked = wired(rejection).client.session('s').fork({ at: 9 });
    await expect(forked).rejects.toMatchObject({ code: 'fork_record_not_found', field: 'at' });
  });
});

test('the type of a state has the names of states', () => {
  expectTypeOf<'stopped'>().toExtend<SessionState['state']>();
  expectTypeOf<'nope'>().not.toExtend<SessionState['state']>();
});

test('the settings of a start have either a prompt or messages', () => {
  type Messages = NonNullable<SessionSettings['messages']>;
  expectTypeOf<{ prompt: string }>().toExtend<SessionSettings>();
  expectTypeOf<{ messages: Messages }>().toExtend<SessionSettings>();
  expectTypeOf<{ prompt: string; messages: Messages }>().not.toExtend<SessionSettings>();
  expectTypeOf<{ model: string }>().not.toExtend<SessionSettings>();
});
