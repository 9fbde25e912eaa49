/**
 * What is seen of a crew from outside. Three personas over four processes: a gateway, a session host, and two that serve a
 * persona each.
 */
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startBus, type TestBus } from './kit/bus.ts';
import { calls, done } from './kit/called-tools.ts';
import { Child, COX_MAIN, cox } from './kit/child.ts';
import { makeTokens } from './kit/gateway-process.ts';
import { endOf, expectAllSound, journalOf } from './kit/journal.ts';
import { type OtlpReceiver, type ReceivedSpan, spansIn, startOtlpReceiver, treeLines } from './kit/otlp-receiver.ts';
import { personaModule } from './kit/persona-service.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { startHost } from './kit/sessions-host.ts';
import { until } from './kit/until.ts';

const ALLOW = { rules: [{ tool: '*', action: 'allow' }] };
const CALLER = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
const SECRETS = {
  ANTHROPIC_API_KEY: `sk-ant-${randomBytes(12).toString('hex')}`,
  STOCK_API_TOKEN: randomBytes(12).toString('hex'),
  COX_APPROVAL_WEBHOOK_SECRET: `whsec_${randomBytes(24).toString('base64')}`,
};
/** Stand where each process would tell it: in the address of the collector, and in what is said of the process in each export. */
const TOLD_SECRETS = {
  COLLECTOR_PATH_TOKEN: `path${randomBytes(12).toString('hex')}`,
  DEPLOYMENT_PASSWORD: `told${randomBytes(12).toString('hex')}`,
};
const COLLECTOR_KEY = randomBytes(12).toString('hex');
const ROOT = 'crew-1';

let bus: TestBus;
let collector: OtlpReceiver;
let gateway: Child;
let host: Child;
const others: Child[] = [];
let gatewayUrl: string;
let token: string;
let crew: ReceivedSpan[] = [];
let readerLog: () => Promise<string[]>;

const env = (more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
  ...SECRETS,
  ...TOLD_SECRETS,
  COX_APPROVAL_WEBHOOK: 'http://127.0.0.1:9/nobody',
  COX_LOG_LEVEL: 'debug',
  COX_METRICS_PORT: '0',
  OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/${TOLD_SECRETS.COLLECTOR_PATH_TOKEN}`,
  OTEL_RESOURCE_ATTRIBUTES: `deployment.note=${TOLD_SECRETS.DEPLOYMENT_PASSWORD}`,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  OTEL_EXPORTER_OTLP_HEADERS: `x-collector-key=${COLLECTOR_KEY}`,
  OTEL_BSP_SCHEDULE_DELAY: '50',
  ...more,
});

const logOf = ({ stdout, stderr }: Child) => stdout + stderr;
const processes = () => [gateway, host, ...others];

async function servePersona(name: string, turns: Parameters<typeof scripted>[0], tools?: string, hooks?: string) {
  const definition = { name, prompt: 'You work.', model: await scripted(turns), permissions: ALLOW };
  const { file, log } = await personaModule(definition, tools, hooks);
  if (tools !== undefined) readerLog = log;
  const child = new Child(COX_MAIN, ['serve', 'personas', file, '--nats', bus.natsUrl, '--json'], { env: env() });
  others.push(child);
  await child.says('"type":"ready"');
  await host.says(new RegExp(`"persona":"${name}".*a persona is announced`));
}

beforeAll(async () => {
  bus = await startBus();
  collector = await startOtlpReceiver();
  host = await startHost(bus, env());
  const tokens = await makeTokens(['caller'], 'admin');
  token = tokens.of.caller as string;
  const state = await scratchFolder('gateway');
  const args = [
    'serve',
    'gateway',
    '--nats',
    bus.natsUrl,
    '--listen',
    '127.0.0.1:0',
    '--tokens',
    tokens.file,
    '--json',
  ];
  gateway = new Child(COX_MAIN, args, { env: env({ COX_STATE_DIR: state }) });
  await gateway.says('"type":"ready"');
  gatewayUrl = String(gateway.json.find(({ type }) => type === 'ready')?.url);
  await servePersona(
    'reader',
    [calls('look', { what: 'rope' }), done],
    `[defineTool({ name: 'look', description: 'Looks.', inputSchema: z.object({ what: z.string() }),
       execute: ({ what }, { traceparent }) => { note(String(traceparent)); return what; } })]`,
    `[{ event: 'PreToolUse', handler: () => true }]`,
  );
  await servePersona('writer', [done]);
  const lead = {
    name: 'lead',
    model: await scripted([
      {
        calls: [
          { tool: 'delegate', args: { persona: 'reader', prompt: 'Read.' } },
          { tool: 'delegate', args: { persona: 'writer', prompt: 'Write.' } },
        ],
        usage: { input_tokens: 30, output_tokens: 7 },
      },
      done,
    ]),
    permissions: ALLOW,
  };
  const answer = await fetch(`${gatewayUrl}/v1/sessions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      traceparent: `00-${CALLER.traceId}-${CALLER.spanId}-01`,
    },
    body: JSON.stringify({ session_id: ROOT, prompt: 'Go.', persona: lead }),
  });
  expect(answer.status, await answer.clone().text()).toBe(202);
  await endOf(bus, ROOT);
  const isWhole = (spans: readonly ReceivedSpan[]) => {
    const ids = new Set(spans.map(({ spanId }) => spanId));
    return (
      spans.filter(({ name }) => name.startsWith('serve_')).length === 5 &&
      spans.every(({ parentSpanId }) => parentSpanId === CALLER.spanId || ids.has(parentSpanId ?? ''))
    );
  };
  await until('every span of the crew was received', () => {
    crew = collector.spans.filter(({ traceId }) => traceId === CALLER.traceId);
    return crew.some(({ name }) => name === 'invoke_agent lead') && isWhole(crew);
  });
}, 120_000);

afterAll(async () => {
  try {
    if (bus) await expectAllSound(bus);
  } finally {
    await Promise.all(processes().map((child) => child?.kill()));
    await collector?.stop();
    await bus?.stop();
    await removeScratch();
  }
}, 120_000);

const TREE = `
gateway: POST /v1/sessions
  sessions: invoke_agent lead
    sessions: provision
    sessions: turn 1
      sessions: chat
      sessions: execute_tool delegate c1_1
        sessions: invoke_agent reader
          sessions: provision
          sessions: turn 1
            sessions: chat
              personas: serve_step reader
            sessions: execute_tool look
              personas: serve_tool look
            sessions: hook PreToolUse
              personas: serve_hook reader:PreToolUse-1
          sessions: turn 2
            sessions: chat
              personas: serve_step reader
      sessions: execute_tool delegate c1_2
        sessions: invoke_agent writer
          sessions: provision
          sessions: turn 1
            sessions: chat
              personas: serve_step writer
    sessions: turn 2
      sessions: chat
`;

const named = (name: string, more: (span: ReceivedSpan) => boolean = () => true) => {
  const found = crew.find((span) => span.name === name && more(span));
  if (!found) throw new Error(`no span ${name}`);
  return found;
};

test('a trace of a crew of three personas over four processes is one tree with right parents', () => {
  expect(treeLines(crew, CALLER.spanId)).toEqual(TREE.trim().split('\n'));
  // Nothing hangs loose, nothing came twice.
  expect(crew).toHaveLength(TREE.trim().split('\n').length);
  expect(new Set(crew.map(({ spanId }) => spanId)).size).toBe(crew.length);
  expect(new Set(crew.map(({ instance }) => instance)).size).toBe(4);
});

test('what stands below a span of the same process ran within its time', () => {
  for (const span of crew) {
    const above = crew.find(({ spanId, instance }) => spanId === span.parentSpanId && instance === span.instance);
    expect(span.endNano >= span.startNano, span.name).toBe(true);
    // A report of a child is on its way when the child has ended, and the time of both is the host's.
    if (above) expect(span.startNano >= above.startNano, `${span.name} in ${above.name}`).toBe(true);
  }
});

test('spans have the attributes of the GenAI conventions', () => {
  const agent = named('invoke_agent lead');
  expect(agent.attributes).toMatchObject({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'lead',
    'gen_ai.conversation.id': ROOT,
    'gen_ai.provider.name': 'scripted',
    'coxswain.stop_reason': 'end_turn',
    'coxswain.run': 1,
  });
  const chat = crew.find(({ parentSpanId, name }) => name.startsWith('chat ') && isTurnOf(agent, parentSpanId, 1));
  expect(chat).toMatchObject({
    // A request to a model is a client's.
    kind: 3,
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.conversation.id': ROOT,
      'gen_ai.usage.input_tokens': 30,
      'gen_ai.usage.output_tokens': 7,
      'gen_ai.response.finish_reasons': ['tool-calls'],
    },
  });
  expect(named('execute_tool look').attributes).toMatchObject({
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'look',
    'gen_ai.tool.call.id': 'c1_1',
    'gen_ai.tool.type': 'function',
  });
  expect(named('POST /v1/sessions')).toMatchObject({
    kind: 2,
    attributes: { 'http.request.method': 'POST', 'http.route': '/v1/sessions', 'http.response.status_code': 202 },
  });
});

function isTurnOf(agent: ReceivedSpan, spanId: string | undefined, turn: number): boolean {
  return crew.some(
    (span) => span.spanId === spanId && span.parentSpanId === agent.spanId && span.attributes['coxswain.turn'] === turn,
  );
}

test('what was said is in no span, as nobody has asked for it', () => {
  const said = crew
    .flatMap(({ attributes }) => Object.keys(attributes))
    .filter((name) => /messages|arguments|result/.test(name));
  expect(said).toEqual([]);
});

test('code of a tool is handed the place of its call in the trace', async () => {
  const span = named('serve_tool look');
  expect(await readerLog()).toEqual([`00-${CALLER.traceId}-${span.spanId}-01`]);
});

test('cox session trace draws the same spans from the journals alone, and prints them as a collector would take them', async () => {
  const printed = await cox(['session', 'trace', ROOT, '--nats', bus.natsUrl, '--json']);
  expect(printed.code, printed.told).toBe(0);
  const place = ({ traceId, spanId, parentSpanId, name }: ReceivedSpan) => ({ traceId, spanId, parentSpanId, name });
  const byId = (a: { spanId: string }, b: { spanId: string }) => (a.spanId < b.spanId ? -1 : 1);
  const drawn = printed.lines.flatMap(spansIn);
  expect(drawn.map(place).sort(byId)).toEqual(
    crew
      .filter(({ service }) => service === 'coxswain-sessions')
      .map(place)
      .sort(byId),
  );
  const shown = await cox(['session', 'trace', ROOT.slice(0, 4), '--nats', bus.natsUrl], { env: { COLUMNS: '80' } });
  expect(shown.code, shown.told).toBe(0);
  expect(shown.lines[0]).toContain(`run 1 of ${ROOT}`);
  expect(shown.stdout).toMatch(/└ invoke_agent writer +━+ /);
  expect(shown.stdout).toContain('30 in, 7 out');
  expect(shown.stdout).not.toContain('\u001b');
  expect(shown.lines.slice(1).filter((line) => [...line].length > 80)).toEqual([]);
  const file = join(await scratchFolder('export'), 'crew.jsonl');
  const exported = await cox(['session', 'export', ROOT, '--nats', bus.natsUrl]);
  await writeFile(file, exported.stdout);
  const ofFile = await cox(['session', 'trace', file, '--json']);
  expect(ofFile.lines.flatMap(spansIn).map(place)).toEqual(
    expect.arrayContaining([place(named('invoke_agent lead')), place(named('turn 2', isOfRoot))]),
  );
  expect((await cox(['session', 'trace', ROOT, '--run', '7', '--nats', bus.natsUrl])).code).toBe(2);
});

const isOfRoot = ({ attributes }: ReceivedSpan) => attributes['gen_ai.conversation.id'] === ROOT;

test('a later run is a trace of its own, linked to the one before and to who has asked for it', async () => {
  const traceparent = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', traceparent };
  const body = JSON.stringify({ body: 'Once more.' });
  const asked = await fetch(`${gatewayUrl}/v1/sessions/${ROOT}/prompt`, { method: 'POST', headers, body });
  expect(asked.status, await asked.clone().text()).toBe(202);
  await endOf(bus, ROOT, 2);
  const run = await until('its span was received', () =>
    collector.spans.find(({ name, attributes }) => name === 'invoke_agent lead' && attributes['coxswain.run'] === 2),
  );
  expect(run.parentSpanId).toBeUndefined();
  expect([CALLER.traceId, '1'.repeat(32)]).not.toContain(run.traceId);
  // The gateway exports its spans independently of the host.
  const request = await until('the span of the request was received', () =>
    collector.spans.find(({ name }) => name === 'POST /v1/sessions/:session_id/prompt'),
  );
  expect(request).toMatchObject({ traceId: '1'.repeat(32), parentSpanId: '2'.repeat(16) });
  expect(run.links).toEqual([named('invoke_agent lead').spanId, request.spanId]);
});

test('lines of logs name session, run, turn, call and trace', () => {
  const lines = logOf(others[0] as Child)
    .split('\n')
    .filter((line) => line.includes('work was served'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.find(({ kind }) => kind === 'tool')).toMatchObject({
    name: 'look',
    call_id: 'c1_1',
    trace_id: CALLER.traceId,
    session_id: named('execute_tool look').attributes['gen_ai.conversation.id'],
  });
  expect(host.json.find(({ msg }) => msg === 'a run has ended')).toMatchObject({
    session_id: expect.any(String),
    run: 1,
    turn: expect.any(Number),
    trace_id: CALLER.traceId,
  });
});

test('no secret of the environment appears in any log, trace, metric or event', async () => {
  // Whatever a model has the host run may look at its environment, and what it prints is an event.
  const model = await scripted([{ calls: [{ tool: 'run_command', args: { command: 'env' } }] }, done]);
  const root = await scratchFolder('curious');
  await bus.command('curious', 'start', { prompt: 'Look around.', model, root, permissions: ALLOW });
  expect(JSON.stringify((await endOf(bus, 'curious')).of('call_ended'))).toContain('PATH=');
  const natsToken = new URL(bus.natsUrl).username;
  const secrets = [
    ...Object.values({ ...SECRETS, ...TOLD_SECRETS }),
    COLLECTOR_KEY,
    token,
    ...(natsToken ? [natsToken] : []),
  ];
  const metrics = await Promise.all(
    processes()
      .flatMap((child) => [...logOf(child).matchAll(/"url":"(http:[^"]+\/metrics)"/g)].map(([, url]) => url as string))
      .map(async (url) => (await fetch(url)).text()),
  );
  // Host and personas; the gateway's are a route of its own.
  expect(metrics).toHaveLength(3);
  const ownMetrics = await fetch(`${gatewayUrl}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  const ids = await bus.client.sessionIds();
  expect(ids).toHaveLength(4);
  const journals = await Promise.all(
    ids.map(async (id) => Buffer.concat((await journalOf(bus, id)).bytes).toString('utf8')),
  );
  const places = {
    logs: processes().map(logOf).join('\n'),
    traces: collector.raw,
    metrics: [...metrics, await ownMetrics.text()].join('\n'),
    events: journals.join('\n'),
  };
  // Each process has come to tell one of them in its log and in its exports: what follows could fail.
  for (const child of processes()) expect(logOf(child)).toMatch(/\/\[redacted\]\/v1\/traces.*spans are exported/);
  expect(
    collector.raw
      .split('"deployment.note"')
      .slice(1)
      .every((text) => text.slice(0, 60).includes('[redacted]')),
  ).toBe(true);
  expect(new Set(collector.spans.map(({ instance }) => instance)).size).toBe(4);
  for (const [place, text] of Object.entries(places)) {
    expect(text.length, place).toBeGreaterThan(1_000);
    for (const secret of secrets) expect(text.includes(secret), `${place} hold ${secret}`).toBe(false);
  }
});

test('a collector that cannot be reached harms nothing: it is told once, and what is dropped is counted', async () => {
  const closed = await startOtlpReceiver();
  await closed.stop();
  const lonely = await startBus();
  const child = await startHost(lonely, {
    ...env(),
    OTEL_EXPORTER_OTLP_ENDPOINT: closed.url,
    OTEL_EXPORTER_OTLP_TIMEOUT: '500',
  });
  try {
    for (const id of ['a', 'b']) {
      await lonely.command(id, 'start', { prompt: 'Go.', model: await scripted([done]) });
      await endOf(lonely, id);
    }
    const url = /"url":"(http:[^"]+\/metrics)"/.exec(child.stdout)?.[1] as string;
    await until('what was dropped is counted', async () =>
      /coxswain_trace_spans_total\{outcome="dropped"\} [1-9]/.test(await (await fetch(url)).text()),
    );
    expect(child.stdout.match(/spans are dropped/g)).toHaveLength(1);
    expect((await child.terminate()).code).toBe(0);
  } finally {
    await child.kill();
    await lonely.stop();
  }
});
