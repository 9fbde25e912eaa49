/** Servers on Streamable HTTP: the official peer, a recording proxy before it, and servers that misbehave. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { HttpAnswers } from '../src/http-answers.ts';
import { MCP_BOUNDS, type McpNotice } from '../src/mod.ts';
import { codeOf, eventually, everythingOverHttp, freePort, opened, textOf, tryOpen } from './mcp-session.ts';
import { recordingProxy } from './recording-proxy.ts';

// Processes start and end in these tests, on machines that may be busy.
vi.setConfig({ testTimeout: 60_000 });

async function everything() {
  const port = await freePort();
  const server = await everythingOverHttp(port);
  return { port, server, proxy: await recordingProxy(port) };
}

describe('server-everything', () => {
  test('its tools are listed and answer', async () => {
    const { proxy } = await everything();
    const { call, toolset } = await opened({ every: { url: proxy.url } });
    expect(toolset.tools.map(({ name }) => name)).toContain('every__echo');
    expect(textOf(await call('every__echo', { message: 'hello' }))).toBe('Echo: hello');
    expect((await call('every__get-tiny-image')).result.content).toContainEqual(
      expect.objectContaining({ type: 'file', media_type: 'image/png' }),
    );
  });

  test('is sent the headers of its configuration, expanded', async () => {
    const { proxy } = await everything();
    const headers = { Authorization: `Bearer $\{TOKEN}` };
    await opened({ every: { url: proxy.url, headers } }, { env: { TOKEN: 'abc' } });
    expect(new Set(proxy.posted.map(({ headers }) => headers.authorization))).toEqual(new Set(['Bearer abc']));
    const failure = await tryOpen({ every: { url: proxy.url, headers } }, { env: {} });
    expect(failure).toMatchObject({
      code: 'mcp_server_failed',
      message: expect.stringContaining('headers.Authorization needs the environment variable TOKEN'),
    });
  });

  test('progress of a long operation is passed on', async () => {
    const { proxy } = await everything();
    const { call } = await opened({ every: { url: proxy.url } });
    const shown: string[] = [];
    const outcome = await call(
      'every__trigger-long-running-operation',
      { duration: 0.4, steps: 4 },
      undefined,
      (text) => shown.push(text),
    );
    expect(textOf(outcome)).toContain('Steps: 4');
    // Of quick reports only the newest is shown.
    expect([shown.at(0), shown.at(-1)]).toEqual(['1/4', '4/4']);
  });

  test('is told to cancel nothing that it has answered: neither at the end of a call nor when the tools are closed', async () => {
    const { proxy } = await everything();
    const { call, toolset } = await opened({ every: { url: proxy.url } });
    const later = new AbortController();
    await call('every__echo', { message: 'hello' }, later.signal);
    later.abort();
    await toolset.close();
    // The end of the connection comes after whatever closing has to say.
    expect(proxy.requests.at(-1)).toBe('DELETE');
    expect(proxy.posted.map(({ method }) => method)).toEqual([
      'initialize',
      'notifications/initialized',
      'tools/list',
      'tools/call',
    ]);
  });

  test('is told of a cancelled call', async () => {
    const { proxy } = await everything();
    const { call } = await opened({ every: { url: proxy.url } });
    const abort = new AbortController();
    const outcome = await call(
      'every__trigger-long-running-operation',
      { duration: 60, steps: 600 },
      abort.signal,
      () => abort.abort(),
    );
    expect(outcome.status).toBe('cancelled');
    await eventually(
      () => proxy.posted.some(({ method }) => method === 'notifications/cancelled'),
      'the cancellation is posted',
    );
    expect(textOf(await call('every__echo', { message: 'after' }))).toBe('Echo: after');
  });

  test('is told when the session is over', async () => {
    const { proxy } = await everything();
    const { toolset } = await opened({ every: { url: proxy.url } });
    expect(await toolset.close()).toEqual([]);
    expect(proxy.requests).toContain('DELETE');
  });

  test('a stream that breaks is resumed, and the answer comes', async () => {
    const { proxy } = await everything();
    const { call } = await opened({ every: { url: proxy.url } });
    let cut = false;
    const outcome = await call('every__trigger-long-running-operation', { duration: 1, steps: 5 }, undefined, () => {
      if (!cut) proxy.cutAnswers();
      cut = true;
    });
    expect(cut).toBe(true);
    expect(outcome.status).toBe('ok');
    expect(textOf(outcome)).toContain('Steps: 5');
    expect(proxy.posted.filter(({ method }) => method === 'tools/call')).toHaveLength(1);
  });

  test('a crash in a call is an error outcome, and after it is back the next call is answered', async () => {
    const { port, server, proxy } = await everything();
    const { call } = await opened({ every: { url: proxy.url } }, { startTimeoutMs: 3_000 });
    const outcome = await call('every__trigger-long-running-operation', { duration: 60, steps: 600 }, undefined, () =>
      server.kill('SIGKILL'),
    );
    expect([outcome.status, codeOf(outcome)]).toEqual(['error', 'tool_failed']);
    expect(textOf(outcome)).toContain('the outcome of the call is unknown');

    const down = await call('every__echo', { message: 'down' });
    expect([down.status, codeOf(down)]).toEqual(['unavailable', 'tool_unavailable']);

    await everythingOverHttp(port);
    expect(textOf(await call('every__echo', { message: 'back' }))).toBe('Echo: back');
  });

  test('a server that has forgotten the session is connected to anew, and the call runs once', async () => {
    const { port, server, proxy } = await everything();
    const { call } = await opened({ every: { url: proxy.url } });
    server.kill('SIGKILL');
    await once(server, 'exit');
    await everythingOverHttp(port);
    expect(textOf(await call('every__echo', { message: 'anew' }))).toBe('Echo: anew');
    const methods = proxy.posted.map(({ method }) => method);
    // Refused, initialised anew, and sent again.
    expect(methods.slice(methods.indexOf('tools/call'))).toEqual([
      'tools/call',
      'initialize',
      'notifications/initialized',
      'tools/list',
      'tools/call',
    ]);
  });

  test('an address where nobody is any more is unavailable', async () => {
    const { proxy } = await everything();
    const { call, toolset } = await opened({ every: { url: proxy.url } });
    await proxy.stop();
    // On a connection that was open it may break first, and then it cannot be told that nothing ran.
    let outcome = await call('every__echo', { message: 'x' });
    if (outcome.status === 'error') outcome = await call('every__echo', { message: 'x' });
    expect([outcome.status, codeOf(outcome)]).toEqual(['unavailable', 'tool_unavailable']);
    expect(textOf(outcome)).toContain('ECONNREFUSED');
    expect(await toolset.close()).toEqual([]);
  });
});

describe('a server that does not start', () => {
  async function serving(listener: RequestListener): Promise<string> {
    const server = createServer(listener).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  }

  test.each<[string, RequestListener, string]>([
    ['never answers', () => {}, 'did not answer within 2000 ms'],
    ['does not know the address', (_request, response) => response.writeHead(404).end('nothing here'), 'nothing here'],
    ['wants a key', (_request, response) => response.writeHead(401).end('who are you'), 'it answered with HTTP 401: '],
    ['wants a key, in its words', (_request, response) => response.writeHead(401).end('who are you'), 'who are you'],
    ['is a web page', (_request, response) => response.setHeader('content-type', 'text/html').end('<p>'), 'text/html'],
    ['breaks off', (_request, response) => response.destroy(), 'UND_ERR_SOCKET'],
  ])('because it %s', async (_name, listener, message) => {
    const failure = await tryOpen({ web: { url: await serving(listener) } }, { startTimeoutMs: 2_000 });
    expect(failure).toMatchObject({ code: 'mcp_server_failed', message: expect.stringContaining(message) });
  });

  test('because it redirects to another origin, which gets no request and no header', async () => {
    let followed = 0;
    const elsewhere = await serving((_request, response) => {
      followed += 1;
      response.end();
    });
    const url = await serving((_request, response) => response.writeHead(307, { location: elsewhere }).end());
    const failure = await tryOpen({ web: { url, headers: { 'X-Region': 'north' } } });
    expect(failure).toMatchObject({
      code: 'mcp_server_failed',
      message: expect.stringContaining(`redirects to ${new URL(elsewhere).origin}, which the host does not follow`),
    });
    expect(followed).toBe(0);
  });

  test('because its redirects within its origin do not end', async () => {
    const url = await serving((_request, response) => response.writeHead(308, { location: '/mcp/' }).end());
    const message = expect.stringContaining('redirects more than 5 times');
    expect(await tryOpen({ web: { url } })).toMatchObject({ code: 'mcp_server_failed', message });
  });

  test('because nobody listens', async () => {
    const failure = await tryOpen({ web: { url: `http://127.0.0.1:${await freePort()}/mcp` } });
    expect(failure).toMatchObject({ code: 'mcp_server_failed', message: expect.stringContaining('ECONNREFUSED') });
  });
});

/** One request to a server that answers by hand: a call, a request for the list, or the end of the session. */
interface Asked {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Answers with these members of a JSON-RPC message, `result` or `error` among them. */
  readonly reply: (members: object) => void;
}

const VANISH = { tools: [{ name: 'vanish', inputSchema: { type: 'object' } }] };

/** A server that answers by hand, for what a whole one never does. @returns its address. */
async function byHand(answers: {
  list?: (asked: Asked) => void;
  call?: (asked: Asked) => void;
  end?: (asked: Asked) => void;
}): Promise<string> {
  const { list = ({ reply }) => reply({ result: VANISH }), call, end } = answers;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    if (request.method === 'DELETE' && end) return end({ request, response, reply: () => {} });
    if (request.method !== 'POST') return response.writeHead(405).end();
    const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString('utf8'));
    // The blank line ends an event, and is nothing after JSON.
    const reply = (members: object) => response.end(`${JSON.stringify({ jsonrpc: '2.0', id, ...members })}\n\n`);
    response.setHeader('content-type', 'application/json');
    if (method === 'initialize') {
      const serverInfo = { name: 'by-hand', version: '1' };
      response.setHeader('mcp-session-id', 's1');
      return reply({
        result: { protocolVersion: params.protocolVersion, capabilities: { tools: { listChanged: true } }, serverInfo },
      });
    }
    if (method === 'tools/list') return list({ request, response, reply });
    if (method === 'tools/call') return call?.({ request, response, reply });
    return response.writeHead(202).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

test('a stream without an answer that ends and cannot be resumed is a lost call', async () => {
  const url = await byHand({
    call: ({ response }) => response.setHeader('content-type', 'text/event-stream').end(': nothing\n\n'),
  });
  const { call } = await opened({ hand: { url } }, { startTimeoutMs: 2_000 });
  const outcome = await call('hand__vanish');
  expect([outcome.status, codeOf(outcome)]).toEqual(['error', 'tool_failed']);
  expect(textOf(outcome)).toContain('the connection ended before the answer came');
});

test('a list that changes while its first pages are read is read again', async () => {
  let lists = 0;
  const url = await byHand({
    list({ response, reply }) {
      lists += 1;
      if (lists > 2) return reply({ result: { tools: [{ ...VANISH.tools[0], name: `list-${lists}` }] } });
      if (lists === 2) return void setTimeout(() => reply({ result: VANISH }), 200);
      response.setHeader('content-type', 'text/event-stream');
      response.write('data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\ndata: ');
      reply({ result: { tools: [], nextCursor: '2' } });
    },
  });
  const { toolset } = await opened({ hand: { url } });
  await eventually(() => toolset.tools.some(({ name }) => name === 'hand__list-3'), 'the changed list');
});

test('a call whose connection breaks ends no other call, and the session ends after the last one', async () => {
  const asked: Asked[] = [];
  let ended = 0;
  const url = await byHand({
    call: (one) => void asked.push(one),
    end({ response }) {
      ended += 1;
      response.end();
    },
  });
  const { call } = await opened({ hand: { url } });
  const slow = call('hand__vanish');
  await eventually(() => asked.length === 1, 'the server has the first call');
  const broken = call('hand__vanish');
  await eventually(() => asked.length === 2, 'the server has the second call');
  asked[1]?.response.destroy();
  expect(textOf(await broken)).toContain('broke while the call ran');
  expect(ended).toBe(0);
  asked[0]?.reply({ result: { content: [{ type: 'text', text: 'paid' }] } });
  expect(textOf(await slow)).toBe('paid');
  expect(ended).toBe(1);
});

describe('a key that a server quotes is not in', () => {
  // As `$(cat key)` in double quotes leaves it. A header is sent without the newline.
  const env = { TOKEN: 'hunter2-hunter2\n' };
  const headers = { 'X-Key': `$\{TOKEN}` };
  const keyOf = ({ request }: Asked) => String(request.headers['x-key']);

  test('the failure of a call', async () => {
    const url = await byHand({ call: (asked) => asked.response.writeHead(403).end(`no access: ${keyOf(asked)}`) });
    const { call } = await opened({ hand: { url, headers } }, { env });
    const text = textOf(await call('hand__vanish'));
    expect(text).toContain('no access: [TOKEN]');
  });

  test('the reason why a result is invalid, wherever that is cut', async () => {
    const url = await byHand({ call: (asked) => asked.reply({ result: {}, [keyOf(asked).repeat(500)]: 1 }) });
    const { call } = await opened({ hand: { url, headers } }, { env });
    const text = textOf(await call('hand__vanish'));
    expect(text).toContain('returned an invalid result: ');
    expect(text).toContain('[TOKEN]');
    expect(text).not.toContain('hunter2');
  });

  test('a notice of a changed list that cannot be read', async () => {
    const notices: string[] = [];
    let lists = 0;
    const url = await byHand({
      list: (asked) =>
        ++lists === 1
          ? asked.reply({ result: VANISH })
          : asked.reply({ error: { code: -32603, message: `no access: ${keyOf(asked)}` } }),
      call({ response, reply }) {
        response.setHeader('content-type', 'text/event-stream');
        response.write('data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\ndata: ');
        reply({ result: { content: [] } });
      },
    });
    const onNotice = ({ text }: McpNotice) => void notices.push(text);
    const { call } = await opened({ hand: { url, headers } }, { env, onNotice });
    await call('hand__vanish');
    await eventually(() => notices.length > 0, 'the notice');
    expect(notices[0]).toContain('its changed list of tools could not be read: ');
    expect(notices[0]).toContain('no access: [TOKEN]');
  });

  test('what could not be closed', async () => {
    const url = await byHand({ end: (asked) => asked.response.writeHead(500, `no access: ${keyOf(asked)}`).end() });
    const { toolset } = await opened({ hand: { url, headers } }, { env });
    expect(await toolset.close()).toEqual([
      expect.stringMatching(/^the session at the MCP server hand could not be ended: .*no access: \[TOKEN\]$/),
    ]);
  });
});

test('of the body of an error the beginning is quoted', async () => {
  const body = `broken ${'x'.repeat(100_000)} tail`;
  const url = await byHand({ call: ({ response }) => response.writeHead(500).end(body) });
  const { call } = await opened({ hand: { url } });
  const text = textOf(await call('hand__vanish'));
  expect(text).toContain('broken xxx');
  expect(text).not.toContain('tail');
});

test('a list of tools is read up to a number of bytes, not of pages alone', async () => {
  let listed = 0;
  const url = await byHand({
    list({ reply }) {
      const name = `t${++listed}`;
      const tool = { name, description: 'x'.repeat(6 * 1024 * 1024), inputSchema: { type: 'object' } };
      reply({ result: { tools: [tool], nextCursor: name } });
    },
  });
  expect(await tryOpen({ hand: { url } })).toMatchObject({
    code: 'mcp_server_failed',
    message: expect.stringContaining('its list of tools has more than 16777216 bytes'),
  });
  expect(listed).toBe(3);
});

test('a server that sends requests and accepts no answer gets a limited number of connections', async () => {
  let answers = 0;
  const pending = new HttpAnswers(1_000, async () => {
    answers++;
    return new Promise<Response>(() => {});
  });
  const post = (message: object) =>
    pending.fetch('http://127.0.0.1:1/', { method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', ...message }) });
  const first = Array.from({ length: MCP_BOUNDS.serverAnswersAtOnceMax }, (_, id) => post({ id, result: {} }));
  await expect(post({ id: 16, result: {} })).rejects.toThrow('accepts no answers');
  await expect(post({ id: 17, error: { code: -32_601, message: 'x' } })).rejects.toThrow('accepts no answers');
  expect(answers).toBe(first.length);
  void post({ id: 18, method: 'tools/call' });
  expect(answers).toBe(first.length + 1);
});

test('a server that answers elsewhere and leaves requests open gets a limited number of connections', async () => {
  const waiting: ((response: Response) => void)[] = [];
  const answers = new HttpAnswers(1_000, () => new Promise<Response>((resolve) => waiting.push(resolve)));
  const post = () =>
    answers.fetch('http://127.0.0.1:1/', { method: 'POST', body: JSON.stringify({ id: 1, method: 'tools/call' }) });
  const open = Array.from({ length: MCP_BOUNDS.requestsOpenMax }, post);
  const refused = await post().catch((error: TypeError) => error.cause);
  expect(refused).toMatchObject({ name: 'NotSentError', message: 'it leaves 128 requests open' });
  expect(waiting).toHaveLength(128);

  // A response counts until it has been read, left or has failed.
  const kinds = [new Response(null, { status: 202 }), new Response('x'), new Response('x', { status: 500 })];
  for (const response of kinds) waiting.shift()?.(response);
  const [empty, read, left] = (await Promise.all(open.slice(0, 3))) as [Response, Response, Response];
  expect(await empty.text()).toBe('');
  void post();
  await expect(post()).rejects.toThrow('fetch failed');
  expect(await read.text()).toBe('x');
  await left.body?.cancel();
  void post();
  void post();
  await expect(post()).rejects.toThrow('fetch failed');
});

describe('a request that a server leaves open', () => {
  test.each(['never answers', 'never ends its stream'])('is ended after its call: it %s', async (what) => {
    const closed: Promise<unknown>[] = [];
    const url = await byHand({
      call: ({ response }) => {
        closed.push(once(response, 'close'));
        if (what === 'never ends its stream')
          response.setHeader('content-type', 'text/event-stream').write(': open\n\n');
      },
    });
    const { call } = await opened({ hand: { url } });
    const cancel = new AbortController();
    const outcome = call('hand__vanish', {}, cancel.signal);
    await eventually(() => closed.length === 1, 'the server has the call');
    cancel.abort();
    expect((await outcome).status).toBe('cancelled');
    await closed[0];
  });

  test('is not sent beyond the limit, so the call has not run', async () => {
    let calls = 0;
    const url = await byHand({ call: () => void calls++ });
    const { call } = await opened({ hand: { url } });
    const open = Array.from({ length: MCP_BOUNDS.requestsOpenMax }, () => call('hand__vanish'));
    await eventually(() => calls === open.length, 'the server has all calls');
    const outcome = await call('hand__vanish');
    expect([outcome.status, textOf(outcome)]).toEqual([
      'unavailable',
      'the MCP server hand cannot be reached: it leaves 128 requests open',
    ]);
    await Promise.all(open);
  });
});

test('a stream that ends at once is opened again after an interval, whatever the server wants', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let opened = 0;
  const answers = new HttpAnswers(1_000, async () => {
    opened++;
    return new Response('retry: 0\n\n', { headers: { 'content-type': 'text/event-stream' } });
  });
  const stream = () => answers.fetch('http://127.0.0.1:1/', { method: 'GET' });
  await stream();
  const second = stream();
  const third = stream();
  await vi.advanceTimersByTimeAsync(MCP_BOUNDS.streamIntervalMs - 1);
  expect(opened).toBe(1);
  await vi.advanceTimersByTimeAsync(1);
  await second;
  expect(opened).toBe(2);
  await vi.advanceTimersByTimeAsync(MCP_BOUNDS.streamIntervalMs);
  await third;
  expect(opened).toBe(3);
});

test.each([
  ['LF', 'data: {}\n\n'],
  ['CRLF', 'data: {}\r\n\r\n'],
  ['CR', 'data: {}\r\r'],
])(
  'a stream with more messages than allowed is read more slowly and completely (lines end with %s)',
  async (_, event) => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const perSecond = MCP_BOUNDS.streamMessagesPerSecond;
    const text = event.repeat(perSecond * 4);
    // Chunks of one byte less than a message: most blank lines are in two chunks.
    const chunks = text.match(new RegExp(`[^]{1,${(event.length - 1) * perSecond}}`, 'g')) as string[];
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const chunk = chunks.shift();
        if (chunk === undefined) controller.close();
        else controller.enqueue(Buffer.from(chunk));
      },
    });
    const answers = new HttpAnswers(1_000, async () => {
      return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
    });
    const { body: paced } = await answers.fetch('http://127.0.0.1:1/', { method: 'GET' });
    let read = '';
    const whole = (async () => {
      for await (const bytes of paced as ReadableStream<Uint8Array>) read += Buffer.from(bytes).toString();
    })();
    const seconds: number[] = [];
    while (read.length < text.length && seconds.length < 10) {
      await vi.advanceTimersByTimeAsync(seconds.length === 0 ? 0 : 1_000);
      seconds.push(Math.floor(read.length / event.length / perSecond));
    }
    await whole;
    expect(read).toBe(text);
    expect(seconds).toEqual([1, 2, 3, 4]);
  },
);

test('a stream with more bytes than allowed is read more slowly and completely, also within one message', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const perSecond = MCP_BOUNDS.streamBytesPerSecond;
  const parts = 8;
  // Two chunks for each message.
  const chunk = Buffer.concat([Buffer.alloc(perSecond / parts - 2, 'x'), Buffer.from('\n\n')]);
  const halves = [Buffer.alloc(chunk.length, 'x'), chunk];
  let sent = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (sent === 4 * parts) return controller.close();
      controller.enqueue(halves[sent++ % 2] as Buffer);
    },
  });
  const answers = new HttpAnswers(1_000, async () => {
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  });
  const { body: paced } = await answers.fetch('http://127.0.0.1:1/', { method: 'GET' });
  let read = 0;
  const whole = (async () => {
    for await (const bytes of paced as ReadableStream<Uint8Array>) read += bytes.length;
  })();
  const seconds: number[] = [];
  while (read < 4 * perSecond && seconds.length < 10) {
    await vi.advanceTimersByTimeAsync(seconds.length === 0 ? 0 : 1_000);
    seconds.push(Math.floor(read / perSecond));
  }
  await whole;
  expect(seconds).toEqual([1, 2, 3, 4]);
});

test.each(['', ' \n', '\ufeff'])('an answer that is an array of messages is refused (after %j)', async (before) => {
  const url = await byHand({
    call: ({ response }) => response.end(`${before}[${'{"jsonrpc":"2.0","method":"notifications/x"},'.repeat(9)}{}]`),
  });
  const { call } = await opened({ hand: { url } }, { startTimeoutMs: 2_000 });
  const outcome = await call('hand__vanish');
  expect([outcome.status, codeOf(outcome)]).toEqual(['error', 'tool_failed']);
  expect(JSON.stringify(outcome)).toContain('the server answered with a JSON array; an answer is one message');
});

test('a long stream whose blank lines come in two chunks is not one message', async () => {
  const comment = Buffer.from(`:${'x'.repeat(1024 * 1024)}\n`);
  let left = 24;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (left-- === 0) return controller.close();
      controller.enqueue(left % 2 === 0 ? Buffer.from('\n') : comment);
    },
  });
  const answers = new HttpAnswers(1_000, async () => {
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  });
  const stream = await answers.fetch('http://127.0.0.1:1/', { method: 'GET' });
  expect((await stream.text()).length).toBe(12 * (comment.length + 1));
});

test('the servers of a session share the bytes of their lists', async () => {
  const url = await byHand({
    list({ reply }) {
      reply({ result: { tools: [{ ...VANISH.tools[0], description: 'x'.repeat(9 * 1024 * 1024) }] } });
    },
  });
  const { message } = (await tryOpen({ one: { url }, other: { url } })) as { message: string };
  expect(message).toContain('the MCP server one could not be started: its list of tools has more than 8388608 bytes');
});

describe('a body without end', () => {
  /** The chunks of 64 KiB that are read of a body, and how the reading ends. */
  async function readOf(status: number, contentType: string, text: string) {
    const chunk = Buffer.from(text.repeat((64 * 1024) / text.length));
    let pulled = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        // A reader without a bound fails here, and not after the memory is full.
        if (++pulled > 1_000) controller.error(new Error('read without a bound'));
        else controller.enqueue(chunk);
      },
    });
    const headers = { 'content-type': contentType };
    const answers = new HttpAnswers(1_000, async () => new Response(endless, { status, headers }));
    const response = await answers.fetch('http://127.0.0.1:1/');
    const end = await response.text().then(
      (read) => `${Buffer.byteLength(read)} bytes`,
      (error: Error) => error.message,
    );
    return { pulled, end };
  }

  test.each<[string, number, string, string]>([
    ['JSON', 200, 'application/json', ' '],
    ['JSON of blank lines', 200, 'application/json', '\n\n'],
    ['JSON that names an event stream', 200, 'application/json; a=text/event-stream', '\n\n'],
    ['an event', 200, 'text/event-stream', 'x'],
  ])('is read up to the bound of a message: %s', async (_name, status, contentType, text) => {
    const { pulled, end } = await readOf(status, contentType, text);
    expect(end).toBe('the server sent a message of more than 10485760 bytes');
    expect(pulled).toBeLessThan(170);
  });

  test('is read up to the bound of an error', async () => {
    const { pulled, end } = await readOf(500, 'text/plain', 'x');
    expect(end).toBe('65536 bytes');
    expect(pulled).toBeLessThan(5);
  });
});
