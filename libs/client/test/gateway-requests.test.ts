/** Requests of a client, against a gateway that is a function: what is tried again, what is not, and what is never kept. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { bearerHeader } from '../src/http/gateway-options.ts';
import { unreached } from '../src/http/gateway-requests.ts';
import { connect, sessionIdOfMessage } from '../src/http.ts';

interface Asked {
  readonly url: URL;
  readonly method: string;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
}

type Answer = Response | Error | ((asked: Asked) => Response);

const json = (value: unknown, status = 200, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(value), { status, headers: { 'content-type': 'application/json', ...headers } });
const problem = (code: string, status: number, more: object = {}, headers: Record<string, string> = {}) =>
  json(
    { type: `urn:coxswain:problem:${code}`, title: '', status, detail: `it is ${code}`, code, ...more },
    status,
    headers,
  );
const HOLDER = { name: 'tester', tenant: 'team', scopes: ['admin'], expires_at: null };
const stored = ({ body }: Asked, more: object = {}) =>
  json({ session_id: 's', command_id: body.command_id, seq: 7, duplicate: false, ...more }, 202);

/** A client of a gateway that gives these answers, one after the other. */
async function clientOf(answers: Answer[], gateway = 'https://gw.test/behind/') {
  const asked: Asked[] = [];
  const fetch = (async (input: string, init: RequestInit) => {
    const body = init.body === undefined ? {} : (JSON.parse(init.body as string) as Record<string, unknown>);
    const one = { url: new URL(input), method: init.method ?? 'GET', headers: new Headers(init.headers), body };
    asked.push(one);
    const answer = asked.length === 1 ? json(HOLDER) : answers.shift();
    if (answer === undefined) throw new Error('asked more often than was thought of');
    if (answer instanceof Error) throw answer;
    return typeof answer === 'function' ? answer(one) : answer;
  }) as typeof globalThis.fetch;
  const client = await connect({ gateway, token: 'cox_token', fetch });
  return { client, asked };
}

test('whose sessions these are, the gateway says; its address may have a path', async () => {
  const { client, asked } = await clientOf([]);
  expect(client.tenant).toBe('team');
  expect(asked[0]?.url.href).toBe('https://gw.test/behind/v1/whoami');
  expect(asked[0]?.headers.get('authorization')).toBe('Bearer cox_token');
});

test('a command is tried again under its id while nobody takes it, and is one', async () => {
  const away = [
    new TypeError('fetch failed'),
    problem('gateway_stopping', 503),
    new Response('bad gateway', { status: 502 }),
  ];
  const { client, asked } = await clientOf([...away, stored]);
  const sent = await client.session('s').steer('x');
  expect(sent).toMatchObject({ seq: 7, duplicate: false });
  const attempts = asked.slice(1);
  expect(attempts).toHaveLength(4);
  expect(new Set(attempts.map(({ body }) => body.command_id))).toEqual(new Set([sent.commandId]));
});

/** A body that begins, and then says nothing. As of a platform: what is aborted fails for whoever reads it. */
function stopping(text: string, signal: AbortSignal | null | undefined): Response {
  const body = new ReadableStream<Uint8Array>({
    start: (stream) => {
      stream.enqueue(new TextEncoder().encode(text));
      signal?.addEventListener('abort', () => stream.error(new DOMException('aborted', 'AbortError')));
    },
  });
  return new Response(body, { status: 200 });
}

test('an answer that stops in its middle is given up, and asked for again', async () => {
  vi.useFakeTimers();
  try {
    let asked = 0;
    const fetch = (async (_input: string, { signal }: RequestInit) => {
      asked++;
      if (asked === 2) return stopping('{"sessions":[', signal);
      return json(asked === 1 ? HOLDER : { sessions: [], next_cursor: null });
    }) as typeof globalThis.fetch;
    const client = await connect({ gateway: 'https://gw.test', token: 'cox_token', fetch });
    const listed = client.wire.listSessions();
    while (asked < 2) await vi.advanceTimersByTimeAsync(1);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await listed).toEqual({ sessions: [], next_cursor: null });
    expect(asked).toBe(3);
  } finally {
    vi.useRealTimers();
  }
});

test('an export that stops in its middle gives what came, and fails', async () => {
  vi.useFakeTimers();
  try {
    let asked = 0;
    const fetch = (async (_input: string, { signal }: RequestInit) =>
      asked++ === 0 ? json(HOLDER) : stopping('one\ntwo\nthr', signal)) as typeof globalThis.fetch;
    const client = await connect({ gateway: 'https://gw.test', token: 'cox_token', fetch });
    const lines: string[] = [];
    const exported = (async () => {
      for await (const line of client.session('s').export()) lines.push(new TextDecoder().decode(line));
    })();
    const failed = expect(exported).rejects.toMatchObject({ name: 'GatewayUnreachableError' });
    while (lines.length < 2) await vi.advanceTimersByTimeAsync(1);
    await vi.advanceTimersByTimeAsync(60_000);
    await failed;
    expect(lines).toEqual(['one', 'two']);
  } finally {
    vi.useRealTimers();
  }
});

test('an export is asked for again after an attempt without an answer', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let asked = 0;
  const fetch = (async (_input: string, { signal }: RequestInit) => {
    asked++;
    if (asked === 1) return json(HOLDER);
    if (asked === 3 && signal?.aborted !== true) return new Response('one\n');
    return new Promise<Response>((_resolve, reject) => {
      const leave = () => reject(new DOMException('aborted', 'AbortError'));
      if (signal?.aborted) leave();
      signal?.addEventListener('abort', leave);
    });
  }) as typeof globalThis.fetch;
  const client = await connect({ gateway: 'https://gw.test', token: 'cox_token', fetch });
  const exported = (async () => {
    const lines: string[] = [];
    for await (const line of client.session('s').export()) lines.push(new TextDecoder().decode(line));
    return lines;
  })().catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await exported).toEqual(['one']);
});

test('a run that its caller aborts is aborted, also if it cannot be cancelled', async () => {
  const caller = new AbortController();
  const answer = (one: Asked) => {
    if (one.url.pathname.endsWith('/cancel')) return problem('scope_missing', 403);
    if (one.method !== 'GET')
      return stored(one, {
        receipt: { type: 'receipt', session_id: 's', command_id: one.body.command_id, n: 1, stage: 'accepted' },
      });
    if (one.headers.get('accept') !== 'text/event-stream') return json({ records: [], more: false });
    caller.abort();
    return new Response('');
  };
  const { client, asked } = await clientOf(Array.from({ length: 8 }, () => answer));
  const ran = client.run('helper', 'hello', { sessionId: 's', signal: caller.signal });
  await expect(ran).rejects.toMatchObject({ code: 'aborted' });
  expect(asked.at(-1)?.url.pathname).toBe('/behind/v1/sessions/s/cancel');
});

test('what is refused is not tried again', async () => {
  const refusals = [
    [problem('session_busy', 409), { name: 'CommandRejectedError', code: 'session_busy' }],
    [problem('scope_missing', 403), { name: 'CommandRejectedError', code: 'scope_missing' }],
    [problem('not_yet_available', 501, { field: 'x' }), { name: 'CommandRejectedError', field: 'x' }],
    [problem('a_newer_hosts', 422), { name: 'CommandRejectedError', code: 'a_newer_hosts' }],
    [problem('prompt_blocked', 422), { name: 'CommandBlockedError' }],
    [problem('session_not_found', 404, { session_id: 's' }), { name: 'SessionNotFoundError', sessionId: 's' }],
    [problem('bus_not_prepared', 503), { name: 'BusNotPreparedError' }],
    [problem('internal', 500), { name: 'CoxswainError', code: 'internal' }],
    [json({ hello: 'world' }), { name: 'CoxswainError', code: 'answer_unreadable' }],
    [new Response('<html>'), { name: 'CoxswainError', code: 'answer_unreadable' }],
    [new Response('<html>', { status: 404 }), { code: 'answer_unreadable' }],
  ] as const;
  for (const [answer, error] of refusals) {
    const { client, asked } = await clientOf([answer]);
    await expect(client.session('s').steer('x')).rejects.toMatchObject(error);
    expect(asked).toHaveLength(2);
  }
});

test('a wrong body never leaves, nor does an actor: the token determines the actor', async () => {
  const { client, asked } = await clientOf([]);
  await expect(client.session('s').wire.send('steer', { boddy: 'x' } as never)).rejects.toMatchObject({
    field: 'boddy',
  });
  await expect(client.session('s').steer('x', { actor: 'me' })).rejects.toMatchObject({
    code: 'unknown_field',
    field: 'actor',
  });
  await expect(client.session('s').cancelCall('..')).rejects.toMatchObject({ field: 'callId' });
  expect(asked).toHaveLength(1);
});

test('what the address says does not stand in the body again', async () => {
  const ended = (one: Asked) => stored(one, { outcome: 'cancelled', call_id: 'c', tool: 't', reason: 'r' });
  const { client, asked } = await clientOf([stored, ended, stored, stored, stored]);
  const session = client.session('s');
  await session.approve('a/b', { args: { x: 1 } });
  await session.cancelCall('c', { reason: 'r' });
  await session.revoke('one');
  await session.replace('two', 'text');
  await session.delete();
  const sent = asked
    .slice(1)
    .map(({ method, url, body: { command_id: _, ...body } }) => [method, url.pathname.slice(7), body]);
  expect(sent).toEqual([
    ['POST', '/v1/sessions/s/approvals/a%2Fb', { decision: 'allow', args: { x: 1 } }],
    ['POST', '/v1/sessions/s/calls/c/cancel', { reason: 'r' }],
    ['DELETE', '/v1/sessions/s/pending/one', {}],
    ['PUT', '/v1/sessions/s/pending/two', { body: 'text' }],
    ['DELETE', '/v1/sessions/s', {}],
  ]);
});

test('a receipt is waited for beyond what a gateway waits for one', async () => {
  const receipt = (asked: Asked) => ({
    type: 'receipt',
    session_id: 's',
    command_id: asked.body.command_id,
    n: 3,
    stage: 'accepted',
  });
  const repeated = (asked: Asked) =>
    stored(asked, { duplicate: true, receipt: { ...receipt(asked), message: 'repeated: nothing changed' } });
  const { client, asked } = await clientOf([problem('receipt_timeout', 504), repeated]);
  const sent = await client.session('s').steer('x', { wait: 'accepted', timeoutMs: 100_000 });
  expect(asked[1]?.url.searchParams.get('timeout_ms')).toBe('60000');
  // It was sent once, and waited on twice.
  expect(sent).toMatchObject({ duplicate: false, receipt: { stage: 'accepted', n: 3 } });
  expect(sent.receipt).not.toHaveProperty('message');
});

test('cancelCall resolves with the outcome, however often a gateway has to be asked for it', async () => {
  const call = { call_id: 'c', tool: 'deploy', reason: 'too slow' };
  const ended = (asked: Asked) => stored(asked, { duplicate: true, outcome: 'timeout', ...call });
  const { client, asked } = await clientOf([problem('receipt_timeout', 504), ended, stored]);
  const session = client.session('s');
  expect(await session.cancelCall('c', { reason: 'too slow', timeoutMs: 100_000 })).toMatchObject({
    ...{ outcome: 'timeout', callId: 'c', tool: 'deploy', reason: 'too slow' },
    sent: { seq: 7, duplicate: false },
  });
  const [first, second] = asked.slice(1).map(({ url, body }): Asked['body'] => ({ asked: url.search, ...body }));
  // The wait for the answer is longer than the tool may take to stop.
  expect(first).toMatchObject({ asked: '?wait=outcome&timeout_ms=60000', reason: 'too slow', timeout_ms: 100_000 });
  expect(second).toMatchObject({ command_id: first?.command_id });
  await expect(session.cancelCall('c')).rejects.toMatchObject({ code: 'answer_unreadable' });
  await expect(session.wire.send('steer', { body: 'x' }, { wait: 'outcome' })).rejects.toMatchObject({
    option: 'wait',
  });
});

test('a repeated start stays a duplicate, also where a gateway is asked twice for its receipt', async () => {
  const receipt = { type: 'receipt', session_id: 's', n: 1, stage: 'accepted', duplicate: true };
  const repeated = (first?: string) => (asked: Asked) => {
    const { command_id } = asked.body;
    return stored(asked, {
      duplicate: true,
      receipt: { ...receipt, command_id, detail: { command_id: first ?? command_id } },
    });
  };
  const silent = problem('receipt_timeout', 504);
  const { client, asked } = await clientOf([silent, repeated('first'), silent.clone(), repeated()]);
  const session = await client.startSession({ prompt: 'go', messageId: 'm' }, { wait: 'accepted', timeoutMs: 100_000 });
  expect(session.sent).toMatchObject({ duplicate: true, receipt: { n: 1, duplicate: true } });
  expect(asked[2]?.body).toMatchObject({ message_id: 'm', session_id: await sessionIdOfMessage('m') });
  // The first start of the session, asked for twice, is no repetition.
  const first = await client.startSession({ prompt: 'go', messageId: 'n' }, { wait: 'accepted', timeoutMs: 100_000 });
  expect(first.sent.duplicate).toBe(false);
});

test('a session that was just started is not gone because another gateway has not heard of it', async () => {
  const { client, asked } = await clientOf([stored, problem('session_not_found', 404), stored]);
  const session = await client.startSession({ prompt: 'go' });
  // Without it the gateway would wait for the session to accept the start.
  expect(asked[1]?.url.searchParams.get('wait')).toBe('stored');
  await session.steer('x');
  expect(asked).toHaveLength(4);
});

test('whoever has enough is let go, and nothing is tried again', async () => {
  const leaving = new AbortController();
  const { client, asked } = await clientOf([
    () => {
      leaving.abort(new Error('enough'));
      return problem('gateway_stopping', 503);
    },
  ]);
  const left = client.session('s').steer('x', { signal: leaving.signal });
  await expect(left).rejects.toMatchObject({ code: 'aborted', cause: { message: 'enough' } });
  expect(asked).toHaveLength(2);
});

test('a deleted session is one, with what stays of it', async () => {
  const tombstone = {
    tombstone: 1,
    session_id: 's',
    deleted_at: '2026-01-01T00:00:00.000Z',
    records: 3,
    last_hash: '0'.repeat(64),
  };
  const { client } = await clientOf([problem('session_deleted', 410, { more: { tombstone } })]);
  await expect(client.session('s').newest()).rejects.toMatchObject({
    code: 'session_deleted',
    tombstone: { sessionId: 's', deletedAt: tombstone.deleted_at, records: 3, lastHash: tombstone.last_hash },
  });
});

test('an answer without end is not read to it', async () => {
  const endless = new ReadableStream<Uint8Array>({ pull: (out) => out.enqueue(new Uint8Array(4 * 1024 * 1024)) });
  const { client } = await clientOf([new Response(endless)]);
  await expect(client.session('s').tree()).rejects.toMatchObject({ code: 'answer_unreadable' });
});

test('a function that gives no token in time is rejected', async () => {
  const late = bearerHeader(() => new Promise(() => undefined), 0);
  await expect(late).rejects.toMatchObject({ code: 'invalid_option', option: 'token' });
});

test('no token stands in an address, and none is quoted', async () => {
  const refused = connect({ gateway: 'https://user:secret@gw.test', token: 'x' });
  await expect(refused).rejects.toMatchObject({ code: 'invalid_option' });
  await expect(refused).rejects.not.toThrow('secret');
  await expect(connect({ gateway: 'https://gw.test', token: 'line\nbreak' })).rejects.toThrow('the token is empty');
  await expect(connect({ servers: 'nats://host' } as never)).rejects.toMatchObject({ code: 'transport_unavailable' });
});

test('whoever is not answered in time is told why the last try came to nothing', async () => {
  const fetch = async () => {
    throw new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED 127.0.0.1:9') });
  };
  const refused = connect({ gateway: 'https://gw.test', token: 'x', fetch, connectTimeoutMs: 50 });
  await expect(refused).rejects.toMatchObject({
    code: 'gateway_unreachable',
    message: 'the gateway did not respond within 50 ms: no gateway responds: connect ECONNREFUSED 127.0.0.1:9',
  });
});

test('a page reads that CORS may be why nothing answers; a program does not', () => {
  const failed = new TypeError('Failed to fetch');
  expect(unreached(failed).message).toBe('no gateway responds: Failed to fetch');
  vi.stubGlobal('location', { origin: 'https://app.test' });
  onTestFinished(() => void vi.unstubAllGlobals());
  expect(unreached(failed).message).toContain(
    'CORS may forbid this page: start the gateway with --allow-origin https://app.test',
  );
});
