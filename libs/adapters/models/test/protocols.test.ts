/** Each provider's protocol over HTTP: against an independent mock, and against a bare server for its faults. */
import { LLMock } from '@copilotkit/aimock';
import type { Models } from '@coxswain/ports';
import { callsOf, type Message, unwritableMember, userText } from '@coxswain/protocol';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { createModels } from '../src/mod.ts';
import { PROTOCOLS } from './protocols.ts';
import { beginStream, type RawServer, rawServer, sse } from './raw-server.ts';
import { ask, TOOLS, textOfParts } from './request.ts';
import { VirtualClock } from './virtual-clock.ts';

const HOLDS_FROM_MS = 100_000;
const mock = new LLMock({ port: 0, host: '127.0.0.1', chunkSize: 4 });
let clock: VirtualClock;
let models: Models;
let server: RawServer | null = null;

beforeAll(async () => {
  await mock.start();
});
afterAll(() => mock.stop());
beforeEach(() => {
  clock = new VirtualClock(HOLDS_FROM_MS);
  models = createModels({ env: {}, clock, firstByteTimeoutMs: 200_000, betweenBytesTimeoutMs: 100_000 });
});
afterEach(async () => {
  mock.reset();
  await server?.close();
  server = null;
});

describe.each(PROTOCOLS)('$title', ({ name, hello, usage, end, cutCall, overloaded, tooLong }) => {
  const atMock = () => ({ name, base_url: mock.url });
  const atServer = () => ({ name, base_url: (server as RawServer).url });
  const go = [userText('go')];

  test('streams text piece by piece', async () => {
    mock.onMessage('go', { content: 'Streams come in pieces.' });
    const { result, parts } = await ask(models, atMock(), go, { system: 'Be brief.' });
    expect(parts.length).toBeGreaterThan(2);
    expect(textOfParts(parts)).toBe('Streams come in pieces.');
    expect(result).toMatchObject({ status: 'complete', finishReason: 'stop', attempts: 1 });
    expect(result.message.content).toMatchObject([{ type: 'text', text: 'Streams come in pieces.' }]);
    const body = JSON.stringify(mock.getLastRequest()?.body);
    expect(body).toContain('Be brief.');
  });

  test('takes parallel calls, and goes on with their results', async () => {
    mock.on({ predicate: (request) => request.messages.some(({ role }) => role === 'tool') }, { content: 'Seen.' });
    mock.on(
      { userMessage: 'go' },
      {
        content: 'Let me look.',
        reasoning: 'Two files are enough.',
        toolCalls: [
          { name: 'read_file', arguments: '{"path":"README.md"}' },
          { name: 'list_files', arguments: '{"path":"src"}' },
        ],
      },
    );
    const first = await ask(models, atMock(), go, { tools: TOOLS });
    const calls = callsOf(first.result.message);
    expect(calls).toMatchObject([
      { tool: 'read_file', args: { path: 'README.md' } },
      { tool: 'list_files', args: { path: 'src' } },
    ]);
    expect(new Set(calls.map((call) => call.call_id)).size).toBe(2);
    expect(first.parts.filter((part) => part.type === 'call').map((part) => part.callId)).toEqual(
      calls.map((call) => call.call_id),
    );

    const results = calls.map(
      (call, index): Message => ({
        role: 'tool',
        call_id: call.call_id,
        tool: call.tool,
        status: index === 0 ? 'ok' : 'error',
        is_error: index === 1,
        content: [{ type: 'text', text: `outcome of ${call.tool}` }],
      }),
    );
    const reminder: Message = { role: 'reminder', content: [{ type: 'text', text: 'try another way' }] };
    const second = await ask(models, atMock(), [...go, first.result.message, ...results, reminder, userText('and?')], {
      tools: TOOLS,
      effect: '9-0',
    });
    expect(textOfParts(second.parts)).toBe('Seen.');
    const body = JSON.stringify(mock.getLastRequest()?.body);
    for (const { call_id, tool } of calls) {
      expect(body).toContain(call_id);
      expect(body).toContain(`outcome of ${tool}`);
    }
    expect(body).toContain('<system-reminder>\\ntry another way');
  });

  test('an image in a result reaches it, and a file that it does not take is named', async () => {
    server = await rawServer((response) => {
      beginStream(response);
      response.end(hello + end);
    });
    const image = Buffer.from('\x89PNG\r\n\x1a\n and its pixels', 'latin1').toString('base64');
    const drawn: Message[] = [
      ...go,
      { role: 'assistant', content: [{ type: 'call', call_id: 'c1', tool: 'read_file', args: {} }] },
      {
        role: 'tool',
        call_id: 'c1',
        tool: 'read_file',
        status: 'ok',
        is_error: false,
        content: [
          { type: 'text', text: 'drawn' },
          { type: 'file', media_type: 'image/png', filename: 'a.png', data: image },
          { type: 'file', media_type: 'application/zip', filename: 'z.zip', data: 'UEsDBA==' },
        ],
      },
    ];
    const { result } = await ask(models, atServer(), drawn, { tools: TOOLS });
    expect(result.status).toBe('complete');
    const body = JSON.stringify(server.bodies);
    expect(body).toContain(image);
    expect(body).toContain('image/png');
    expect(body).toContain('z.zip (application/zip, 4 bytes) is not shown: this model does not accept such files');
    expect(body).not.toContain('UEsDBA==');
  });

  test('an abort in the middle keeps the text so far and ends at once', async () => {
    server = await rawServer((response) => {
      beginStream(response);
      // Never ends, and says nothing more.
      response.write(hello);
    });
    const abort = new AbortController();
    const { result, parts } = await ask(models, atServer(), go, {
      signal: abort.signal,
      onPart: (part) => {
        if (part.type === 'text' && part.text.endsWith('lo')) abort.abort();
      },
    });
    expect(result).toMatchObject({ status: 'cancelled', finishReason: 'cancelled', attempts: 1 });
    expect(result.message.content).toEqual([{ type: 'text', text: 'Hello' }]);
    expect(textOfParts(parts)).toBe('Hello');
  });

  test('an abort at the mock stops its stream', async () => {
    mock.onMessage('go', { content: 'x'.repeat(4_000) }, { latency: 5 });
    const abort = new AbortController();
    const { result } = await ask(models, atMock(), go, { signal: abort.signal, onPart: () => abort.abort() });
    expect(result.status).toBe('cancelled');
    expect(result.message.content).toEqual([{ type: 'text', text: 'xxxx' }]);
  });

  test('429 waits as long as retry-after says, then succeeds', async () => {
    mock.on({ userMessage: 'go', sequenceIndex: 0 }, { error: { message: 'slow down' }, status: 429, retryAfter: 7 });
    mock.onMessage('go', { content: 'Now.' });
    const { result, parts } = await ask(models, atMock(), go);
    expect(result).toMatchObject({ status: 'complete', attempts: 2 });
    expect(textOfParts(parts)).toBe('Now.');
    expect(clock.slept.filter((ms) => ms >= 500)).toEqual([7_000]);
  });

  test('429 for ever ends as model_rate_limited after four requests', async () => {
    mock.onMessage('go', { error: { message: 'slow down' }, status: 429, retryAfter: 3_600 });
    const { result } = await ask(models, atMock(), go);
    expect(result).toMatchObject({
      status: 'failed',
      attempts: 4,
      error: { code: 'model_rate_limited', message: expect.stringContaining('slow down'), retryable: true },
    });
    expect(clock.slept).toEqual([60_000, 60_000, 60_000]);
  });

  test('503 is tried again, 400 is not', async () => {
    mock.on({ userMessage: 'go', sequenceIndex: 0 }, { error: { message: 'busy' }, status: 503 });
    mock.onMessage('go', { content: 'Now.' });
    mock.onMessage('wrong', { error: { message: 'no such model' }, status: 400 });
    expect((await ask(models, atMock(), go)).result).toMatchObject({ status: 'complete', attempts: 2 });
    expect((await ask(models, atMock(), [userText('wrong')])).result).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: { code: 'model_request_failed', message: expect.stringContaining('no such model'), retryable: false },
    });
  });

  test('a prompt that is too long is context_overflow, and not sent again', async () => {
    server = await rawServer((response) => {
      response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(tooLong));
    });
    const { result } = await ask(models, atServer(), go);
    expect(result).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: { code: 'context_overflow', retryable: false },
      message: { content: [] },
    });
  });

  test('another refusal that speaks of tokens and lengths is none', async () => {
    const message = 'max_tokens: 99999 > 8192, which is the maximum allowed number of output tokens';
    server = await rawServer((response) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', code: 400, message, status: 'X' } }),
      );
    });
    const { result } = await ask(models, atServer(), go);
    expect(result.error?.code).toBe('model_request_failed');
  });

  test('a call that was cut off before its arguments is none that could run', async () => {
    server = await rawServer((response) => {
      beginStream(response);
      response.end(cutCall);
    });
    const { result } = await ask(models, atServer(), go, { tools: TOOLS });
    expect(result).toMatchObject({ status: 'complete', finishReason: 'length' });
    expect(callsOf(result.message)).toMatchObject([
      { tool: 'read_file', args: null, problem: { code: 'invalid_call_arguments' } },
    ]);
  });

  test.each([
    ['a frame that is not JSON', 'data: {"half\n\n'],
    ['a frame of another shape', 'data: {"choices": 5, "candidates": 5}\n\n'],
    ['no final frame', ''],
  ])('%s breaks the answer: its text is kept, and the request is not sent again', async (_, frame) => {
    server = await rawServer((response) => {
      beginStream(response);
      response.end(hello + frame);
    });
    const { result } = await ask(models, atServer(), go);
    expect(result).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: { code: 'model_stream_broken', retryable: true },
      message: { content: [{ type: 'text', text: 'Hello' }] },
    });
    expect(result.error?.message).not.toMatch(/[\r\n]/);
  });

  test('a broken answer that had said nothing is asked for again', async () => {
    const garbage = ['data: {"half\n\n', '', '<html>not a stream at all</html>'];
    server = await rawServer((response, n) => {
      beginStream(response);
      response.end(garbage[n - 1] ?? hello + end);
    });
    const { result } = await ask(models, atServer(), go);
    expect(result).toMatchObject({ status: 'complete', attempts: 4, message: { content: [{ text: 'Hello' }] } });
    const waits = clock.slept.filter((ms) => ms >= 250);
    expect(waits).toHaveLength(3);
    for (const [index, ms] of waits.entries()) {
      expect(ms).toBeGreaterThanOrEqual(250 * 2 ** index);
      expect(ms).toBeLessThanOrEqual(500 * 2 ** index);
    }
  });

  test('an error that the provider reports within its stream', async () => {
    server = await rawServer((response, n) => {
      beginStream(response);
      response.end(n === 1 ? overloaded : hello + overloaded);
    });
    const { result } = await ask(models, atServer(), go);
    expect(result).toMatchObject({ status: 'failed', attempts: 2, message: { content: [{ text: 'Hello' }] } });
    expect(result.error?.code).toMatch(/^model_(rate_limited|unavailable)$/);
  });

  test('a connection cut in the middle', async () => {
    server = await rawServer((response) => {
      beginStream(response);
      response.write(hello + usage, () => setTimeout(() => response.destroy(), 20));
    });
    const { result } = await ask(models, atServer(), go);
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'model_stream_broken' },
      message: { content: [{ text: 'Hello' }] },
      usage: usage === '' ? { input_tokens: 0, output_tokens: 0 } : { input_tokens: 3, output_tokens: 2 },
    });
  });

  test('a web page is an error at once, which says what to check', async () => {
    server = await rawServer((response) => {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
      // The page does not end: its head alone is enough.
      response.write('<!doctype html><title>Sign in</title>');
    });
    const { result } = await ask(models, atServer(), go);
    expect(result).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: { code: 'model_request_failed', message: expect.stringMatching(/web page \(text\/html\).*base_url/) },
    });
  });

  test('an error whose body does not end is read up to a bound, and not tried again', async () => {
    server = await rawServer((response) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, 0x20)));
      };
      response.on('drain', more);
      more();
    });
    const { result } = await ask(models, atServer(), go);
    expect(result).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: { code: 'model_request_failed', message: expect.stringContaining('more than 1048576 bytes') },
    });
  });

  test('a redirect is an error at once: key and prompt go to no other address', async () => {
    let followed = 0;
    const other = await rawServer((response) => {
      followed += 1;
      response.writeHead(200).end();
    });
    onTestFinished(() => other.close());
    server = await rawServer((response) => response.writeHead(307, { location: other.url }).end());
    const { result } = await ask(models, atServer(), go);
    expect(result).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: { code: 'model_request_failed', message: expect.stringMatching(/redirect.*base_url/) },
    });
    expect(followed).toBe(0);
  });

  test('no request holds a lone surrogate, whatever the journal held', async () => {
    server = await rawServer((response) => {
      beginStream(response);
      response.end(hello + end);
    });
    const call = { type: 'call' as const, call_id: 'c1', tool: 'read_file', args: { path: 'x\ud83d' } };
    const old: Message[] = [
      userText('go \ud800'),
      { role: 'assistant', content: [{ type: 'text', text: '\udc00' }, call] },
      {
        role: 'tool',
        call_id: 'c1',
        tool: 'read_file',
        status: 'ok',
        is_error: false,
        content: [{ type: 'text', text: 'half \ud83d' }],
      },
    ];
    const { result } = await ask(models, atServer(), old, { system: 'be \udfff', tools: TOOLS });
    expect(result.status).toBe('complete');
    expect(unwritableMember(server.bodies)).toBeNull();
    expect(JSON.stringify(server.bodies)).toContain('half \ufffd');
  });

  test('silence before the first byte is a time-out, and tried again', async () => {
    server = await rawServer((response, n) => {
      if (n === 1) return void setTimeout(() => clock.elapse(200_000), 5);
      beginStream(response);
      response.end(hello + end);
    });
    const { result } = await ask(models, atServer(), go);
    expect(result).toMatchObject({ status: 'complete', attempts: 2 });
  });

  test('silence in the middle is a time-out with the text so far', async () => {
    server = await rawServer((response) => {
      beginStream(response);
      response.write(hello);
    });
    const { result } = await ask(models, atServer(), go, {
      onPart: (part) => {
        if (part.type === 'text' && part.text.endsWith('lo')) setTimeout(() => clock.elapse(100_000), 5);
      },
    });
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'model_timeout', message: expect.stringContaining('100000 ms') },
      message: { content: [{ text: 'Hello' }] },
    });
  });
});

test('a prompt that is found too long only once the stream has begun', async () => {
  const error = { type: 'invalid_request_error', code: 'context_length_exceeded', message: 'too long', param: null };
  server = await rawServer((response) => {
    beginStream(response);
    response.end(sse({ type: 'error', sequence_number: 1, error }));
  });
  const { result } = await ask(models, { name: 'openai/gpt-4o', base_url: server.url }, [userText('go')]);
  expect(result).toMatchObject({ attempts: 1, error: { code: 'context_overflow' }, message: { content: [] } });
});

test('an answer that is complete does not wait for a stream that never ends', async () => {
  const { name, hello, end } = PROTOCOLS.find(({ title }) => title === 'Anthropic') as (typeof PROTOCOLS)[number];
  server = await rawServer((response) => {
    beginStream(response);
    response.write(hello + end);
    const pings = setInterval(() => response.write('event: ping\ndata: {"type":"ping"}\n\n'), 1);
    response.on('close', () => clearInterval(pings));
  });
  const { result } = await ask(models, { name, base_url: server.url }, [userText('go')]);
  expect(result).toMatchObject({ status: 'complete', message: { content: [{ text: 'Hello' }] } });
});

test('a server that is not there is model_unavailable, and says why', async () => {
  const { result } = await ask(models, { name: 'openai-compatible/x', base_url: 'http://127.0.0.1:1' }, [
    userText('go'),
  ]);
  expect(result).toMatchObject({
    status: 'failed',
    attempts: 4,
    error: { code: 'model_unavailable', retryable: true },
  });
  expect(result.error?.message).toMatch(/cannot be reached: .+/);
});

test('an abort while it waits to send again ends it', async () => {
  const abort = new AbortController();
  server = await rawServer((response) => {
    response.writeHead(503).end();
    abort.abort();
  });
  const { result } = await ask(models, { name: 'openai-chat/x', base_url: server.url }, [userText('go')], {
    signal: abort.signal,
  });
  expect(result.status).toBe('cancelled');
  expect(server.bodies).toHaveLength(1);
});

test('a request that is aborted before it begins sends nothing', async () => {
  server = await rawServer((response) => void response.end());
  const { result } = await ask(models, { name: 'openai-chat/x', base_url: server.url }, [userText('go')], {
    signal: AbortSignal.abort(),
  });
  expect(result).toMatchObject({ status: 'cancelled', attempts: 0 });
  expect(server.bodies).toHaveLength(0);
});

test('a key never stands in a failure', async () => {
  const key = 'sk-secret-0123456789';
  server = await rawServer((response) => {
    response.writeHead(401, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: `wrong key ${key}`, type: 'authentication_error' } }));
  });
  const keyed = createModels({ env: { OPENAI_API_KEY: `${key}\n` } });
  const { result } = await ask(keyed, { name: 'openai-chat/x', base_url: server.url }, [userText('go')]);
  expect(result.error).toEqual({
    code: 'model_request_failed',
    message: 'openai-chat answered 401: wrong key [key]',
    retryable: false,
  });
});
