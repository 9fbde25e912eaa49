/** Telemetry on its own: what the environment asks for, what is exported, and what is not. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { observedHook } from '@coxswain/handlers';
import type { Log } from '@coxswain/ports';
import {
  type EndedSpan,
  ERROR_CATALOGUE,
  type HookQuestion,
  type JsonObject,
  METRIC_LABEL_VALUES_MAX,
  sessionRef,
} from '@coxswain/protocol';
import { afterEach, describe, expect, test } from 'vitest';
import { serveMetrics } from '../src/metrics-server.ts';
import {
  createRegistry,
  metricsAddress,
  observeWork,
  readTraceSettings,
  registryMeters,
  startTelemetry,
} from '../src/mod.ts';

const SECRET = 'a-secret-of-the-process';
const masked = (text: string) => text.replaceAll(SECRET, '[redacted]');
const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };
const ended: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

/** A collector that keeps what it was sent. @param status what it answers. */
async function collector(status = 200) {
  const got: { readonly type: string | undefined; readonly key: unknown; readonly body: Buffer }[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const { 'content-type': type, 'x-key': key } = request.headers;
    got.push({ type, key, body: Buffer.concat(parts) });
    response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ended.push(() => new Promise((resolve) => server.close(resolve)));
  return { got, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const start = (env: NodeJS.ProcessEnv, log = silent, closeMs?: number) =>
  startTelemetry({
    service: 'sessions',
    of: 'host',
    env,
    log,
    masked,
    metrics: { host: '127.0.0.1', port: 0 },
    closeMs,
  });

const span = (more: Partial<EndedSpan> = {}): EndedSpan => ({
  context: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), sampled: true },
  parent: null,
  name: 'chat m',
  kind: 'client',
  startMs: 1_000,
  endMs: 1_250.5,
  error: { type: 'model_failed', message: `it said ${SECRET}` },
  attributes: { said: SECRET, listed: [SECRET] },
  moments: [{ name: 'seam', atMs: 1_100, attributes: { of: SECRET } }],
  links: [],
  ...more,
});

describe('spans', () => {
  test('are sent as JSON, with their times and without secrets', async () => {
    const { got, url } = await collector();
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: `${url}/`,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-key=k%20k',
    };
    const telemetry = await start(env);
    telemetry.spans?.take(span());
    await telemetry.close();
    expect(got).toMatchObject([{ type: 'application/json', key: 'k k' }]);
    const text = got[0]?.body.toString('utf8') ?? '';
    expect(text).not.toContain(SECRET);
    const [sent] = JSON.parse(text).resourceSpans[0].scopeSpans[0].spans;
    expect(sent).toMatchObject({
      startTimeUnixNano: '1000000000',
      endTimeUnixNano: '1250500000',
      status: { code: 2, message: 'it said [redacted]' },
    });
    expect(text).toContain('"coxswain-sessions"');
  });

  test('are sent as protobuf by default', async () => {
    const { got, url } = await collector();
    const telemetry = await start({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/own`, OTEL_SERVICE_NAME: 'mine' });
    telemetry.spans?.take(span());
    await telemetry.close();
    expect(got).toMatchObject([{ type: 'application/x-protobuf' }]);
    expect(got[0]?.body.includes('mine')).toBe(true);
    expect(got[0]?.body.includes(SECRET)).toBe(false);
  });

  test('of a trace that nobody keeps are not sent', async () => {
    const { got, url } = await collector();
    const telemetry = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: url });
    telemetry.spans?.take(span({ context: { ...span().context, sampled: false } }));
    await telemetry.close();
    expect(got).toEqual([]);
  });

  test('beyond what may wait are dropped and counted, and each reason is told once', async () => {
    const { url } = await collector(400);
    const told: string[] = [];
    const log: Log = { ...silent, warn: (_, message) => void told.push(message) };
    const telemetry = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_MAX_QUEUE_SIZE: '5' }, log);
    for (let at = 0; at < 20; at++) telemetry.spans?.take(span());
    // Five had room, and the collector refused them.
    await expect
      .poll(async () => (await fetch(telemetry.metricsUrl as string)).text())
      .toContain('coxswain_trace_spans_total{outcome="dropped"} 20\n');
    await telemetry.close();
    const collected = `spans are dropped: the collector at ${url}/v1/traces`;
    expect(told).toEqual([`${collected} is slower than this process`, `${collected} refused them with status 400`]);
  });

  test('that a collector refuses are told with its status, and counted at the end', async () => {
    const { url } = await collector(500);
    const told: unknown[] = [];
    const log: Log = { ...silent, warn: (fields, message) => void told.push([fields, message]) };
    const telemetry = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: url }, log);
    telemetry.spans?.take(span());
    telemetry.spans?.take(span());
    const why = `the collector at ${url}/v1/traces refused them with status 500`;
    expect(await telemetry.close()).toEqual({ count: 2, why });
    expect(told).toEqual([[{ error: 'Internal Server Error' }, `spans are dropped: ${why}`]]);
  });

  test('are not waited for at the end where the collector does not answer', async () => {
    const asked: unknown[] = [];
    const mute = createServer((request) => void asked.push(request.url));
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    ended.push(() => {
      mute.closeAllConnections();
      return new Promise((resolve) => mute.close(resolve));
    });
    const url = `http://127.0.0.1:${(mute.address() as AddressInfo).port}`;
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_EXPORTER_OTLP_TIMEOUT: '60000', OTEL_BSP_SCHEDULE_DELAY: '1' };
    const telemetry = await start(env, silent, 100);
    telemetry.spans?.take(span());
    await expect.poll(() => asked).toEqual(['/v1/traces']);
    expect(await telemetry.close()).toEqual({
      count: 1,
      why: `the collector at ${url}/v1/traces did not accept them within 100 ms of the end`,
    });
  });

  test('are all there where the collector took them', async () => {
    const { url } = await collector();
    const telemetry = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: url });
    telemetry.spans?.take(span());
    expect(await telemetry.close()).toBeNull();
  });

  test('are told without the key that stands in an address', async () => {
    const env = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://me:pass@127.0.0.1:9/t?key=k' };
    const telemetry = await start(env, silent, 1);
    telemetry.spans?.take(span());
    expect((await telemetry.close())?.why).toMatch(/^the collector at http:\/\/127\.0\.0\.1:9\/t (did not|cannot)/);
  });
});

describe('a sampler', () => {
  const [low, high] = [`${'0'.repeat(31)}1`, `${'f'.repeat(8)}${'0'.repeat(24)}`];
  const under = (sampled: boolean) => ({ traceId: low, spanId: 'b'.repeat(16), sampled });

  test.each<[string | undefined, string | undefined, boolean[]]>([
    // Of a trace that begins here with a low id, with a high one, and below what is not kept and what is.
    [undefined, undefined, [true, true, false, true]],
    ['always_on', undefined, [true, true, true, true]],
    ['always_off', undefined, [false, false, false, false]],
    ['parentbased_always_off', undefined, [false, false, false, true]],
    ['traceidratio', '0.5', [true, false, true, true]],
    ['parentbased_traceidratio', '0.5', [true, false, false, true]],
    ['parentbased_traceidratio', '0', [false, false, false, true]],
    ['traceidratio', undefined, [true, true, true, true]],
  ])('%s of %s keeps what it should', async (name, share, kept) => {
    const telemetry = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
      OTEL_TRACES_SAMPLER: name,
      OTEL_TRACES_SAMPLER_ARG: share,
    });
    const keeps = telemetry.spans?.keeps;
    expect([keeps?.(low, null), keeps?.(high, null), keeps?.(low, under(false)), keeps?.(low, under(true))]).toEqual(
      kept,
    );
    await telemetry.close();
  });
});

describe('the environment', () => {
  test.each<NodeJS.ProcessEnv>([
    {},
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x', OTEL_SDK_DISABLED: 'true' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x', OTEL_TRACES_EXPORTER: 'none' },
  ])('%j traces nothing', async (env) => {
    expect(readTraceSettings(env)).toBeNull();
    const telemetry = await start(env);
    expect(telemetry.spans).toBeNull();
    await telemetry.close();
  });

  test.each<[string, NodeJS.ProcessEnv]>([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', { OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4318' }],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
    ['OTEL_TRACES_SAMPLER', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x', OTEL_TRACES_SAMPLER: 'jaeger_remote' }],
    [
      'OTEL_TRACES_SAMPLER_ARG',
      {
        OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x',
        OTEL_TRACES_SAMPLER: 'traceidratio',
        OTEL_TRACES_SAMPLER_ARG: '10%',
      },
    ],
    ['OTEL_BSP_MAX_QUEUE_SIZE', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x', OTEL_BSP_MAX_QUEUE_SIZE: '0' }],
  ])('a wrong %s is refused by name', (name, env) => {
    expect(() => readTraceSettings(env)).toThrow(name);
  });

  test.each([
    ['9464', { host: '127.0.0.1', port: 9464 }],
    [':9464', { host: '0.0.0.0', port: 9464 }],
    ['10.0.0.1:9464', { host: '10.0.0.1', port: 9464 }],
    ['[::1]:9464', { host: '::1', port: 9464 }],
  ])('metrics are served at %s', (text, address) => expect(metricsAddress(text, 'X')).toEqual(address));

  test.each(['', 'x', '99999', 'a:b:1'])('and not at %j', (text) => {
    expect(() => metricsAddress(text, 'COX_METRICS_PORT')).toThrow('COX_METRICS_PORT takes [HOST:]PORT');
  });

  test('a port that is taken is told with what was to be there', async () => {
    const first = await serveMetrics(createRegistry(), { host: '127.0.0.1', port: 0 });
    const port = Number(new URL(first.url).port);
    try {
      await expect(serveMetrics(createRegistry(), { host: '127.0.0.1', port })).rejects.toMatchObject({
        code: 'port_in_use',
        message: `metrics cannot be served at 127.0.0.1:${port}: port ${port} is in use (EADDRINUSE)`,
      });
    } finally {
      await first.close();
    }
  });
});

test('strangers cannot fill a process with the names of their tools', async () => {
  const registry = createRegistry();
  const meters = registryMeters(registry, 'host');
  for (let at = 0; at < 3 * METRIC_LABEL_VALUES_MAX; at++)
    meters.observe('coxswain_tool_seconds', { tool: `tool_${at}`, outcome: 'ok' }, 1);
  const counts = (await registry.metrics())
    .split('\n')
    .filter((line) => line.startsWith('coxswain_tool_seconds_count'));
  expect(counts).toHaveLength(METRIC_LABEL_VALUES_MAX + 1);
  expect(counts).toContain(`coxswain_tool_seconds_count{tool="other",outcome="ok"} ${2 * METRIC_LABEL_VALUES_MAX}`);
});

describe('work that is served', () => {
  const work = { kind: 'tool', name: 'look', tenant: 'red', sessionId: 's', callId: 'c' } as const;
  const above = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  const meters = { add() {}, observe() {}, census: () => false };

  test('has a span below that of the call', () => {
    const taken: EndedSpan[] = [];
    const spans = { capturesContent: false, keeps: () => true, masked, take: (one: EndedSpan) => void taken.push(one) };
    const under = observeWork({ meters, spans }, silent).begin({ ...work, traceparent: above });
    under.end({ status: 'error', code: 'tool_failed' });
    const [made] = taken;
    expect(made).toMatchObject({
      name: 'serve_tool look',
      parent: { spanId: 'b'.repeat(16) },
      error: { type: 'tool_failed', message: ERROR_CATALOGUE.tool_failed.meaning },
    });
    expect(under.traceparent).toBe(`00-${'a'.repeat(32)}-${made?.context.spanId}-01`);
  });

  test('is logged with the call that a hook is asked about, and with the consult by its own name', async () => {
    const lines: object[] = [];
    const log: Log = { ...silent, debug: (fields) => void lines.push(fields) };
    const observer = observeWork({ meters, spans: null }, log);
    const ask = (payload: JsonObject) => {
      const registration = { id: 'policy' } as HookQuestion['registration'];
      const ref = sessionRef('s', 'red');
      const question = { ref, effectId: 'e1', registration, payload, transcript: async () => [], onFeedback() {} };
      return observedHook(observer, question, undefined, async () => ({ status: 'returned', raw: true }));
    };
    await ask({ event: 'PreToolUse', tool: { name: 'look', args: {}, call_id: 'c1' } });
    await ask({ event: 'pre_suspend', call_id: 'c2' });
    await ask({ event: 'session_start' });
    expect(lines).toMatchObject([
      { call_id: 'c1', effect_id: 'e1' },
      { call_id: 'c2', effect_id: 'e1' },
      { call_id: undefined, effect_id: 'e1' },
    ]);
  });

  test('hands on what it was given where nobody traces here, and nothing that is no place in a trace', () => {
    const begin = (traceparent: string) => observeWork({ meters, spans: null }, silent).begin({ ...work, traceparent });
    expect(begin(above).traceparent).toBe(above);
    expect(begin('nonsense').traceparent).toBeUndefined();
  });
});
