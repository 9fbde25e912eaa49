/** What is traced of hosts that capture content, that are killed, and of commands that come over a WebSocket. */
import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { startBus, type TestBus } from './kit/bus.ts';
import { calls, done } from './kit/called-tools.ts';
import { Child, COX_MAIN, cox } from './kit/child.ts';
import { startGateway } from './kit/gateway.ts';
import { endOf, eventOf } from './kit/journal.ts';
import { type OtlpReceiver, spansIn, startOtlpReceiver, treeLines } from './kit/otlp-receiver.ts';
import { openSocket } from './kit/page-socket.ts';
import { personaModule } from './kit/persona-service.ts';
import { removeScratch } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { startHost } from './kit/sessions-host.ts';
import { until } from './kit/until.ts';

const ALLOW = { rules: [{ tool: '*', action: 'allow' }] };
const CALLER = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
const TRACEPARENT = `00-${CALLER.traceId}-${CALLER.spanId}-01`;
const ended: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});
afterAll(removeScratch);

interface Traced {
  readonly bus: TestBus;
  readonly collector: OtlpReceiver;
  readonly env: NodeJS.ProcessEnv;
}

async function traced(): Promise<Traced> {
  const bus = await startBus();
  ended.push(() => bus.stop());
  const collector = await startOtlpReceiver();
  ended.push(() => collector.stop());
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_BSP_SCHEDULE_DELAY: '50',
  };
  return { bus, collector, env };
}

async function hostOf({ bus, env }: Traced, more: NodeJS.ProcessEnv = {}): Promise<Child> {
  const host = await startHost(bus, { ...env, ...more });
  ended.push(() => host.kill());
  return host;
}

const runEnded = ({ collector }: Traced, run = 1) =>
  until('the span of the run was received', () =>
    collector.spans.find(
      ({ name, attributes }) => name.startsWith('invoke_agent') && attributes['coxswain.run'] === run,
    ),
  );

/** Says the secret wherever somebody can say something, once where a text is cut. */
async function saysSecret({ bus }: Traced, secret: string): Promise<void> {
  const model = await scripted([{ text: `I see ${secret}.`, ...calls('list_files', { path: `at-${secret}` }) }, done]);
  const prompt = `My key is ${secret}. ${'x'.repeat(1_980 - 12 - secret.length)}${secret}`;
  await bus.command('said', 'start', { prompt, model, permissions: ALLOW });
  await endOf(bus, 'said');
}

const CONTENT = [
  'gen_ai.input.messages',
  'gen_ai.output.messages',
  'gen_ai.tool.call.arguments',
  'gen_ai.tool.call.result',
];
const contentOf = ({ collector }: Traced) =>
  collector.spans.flatMap(({ attributes }) => Object.entries(attributes).filter(([name]) => CONTENT.includes(name)));

test('what was said is in no span by default', async () => {
  const all = await traced();
  await hostOf(all);
  await saysSecret(all, 'what-nobody-should-see');
  await runEnded(all);
  expect(contentOf(all)).toEqual([]);
  expect(all.collector.raw).not.toContain('what-nobody');
}, 120_000);

test('what was said is in spans where that was asked for, without secrets of the environment, whole or cut', async () => {
  const all = await traced();
  // Nothing about it looks like a secret but the name of its variable.
  const secret = `weather-${randomBytes(12).toString('hex')}`;
  await hostOf(all, { OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true', STOCK_TOKEN: secret });
  await saysSecret(all, secret);
  await runEnded(all);
  const content = contentOf(all);
  expect([...new Set(content.map(([name]) => name))].sort()).toEqual([...CONTENT].sort());
  const texts = content.map(([, text]) => String(text));
  expect(texts.find((text) => text.includes('My key is [redacted]. xxx'))).toBeDefined();
  expect(texts.find((text) => text.includes('I see [redacted].'))).toBeDefined();
  expect(texts.find((text) => text.includes('at-[redacted]'))).toBeDefined();
  expect(all.collector.raw).not.toContain('weather');
}, 120_000);

const TREE = `
sessions: invoke_agent worker
  sessions: provision
  sessions: turn 1
    sessions: chat
      personas: serve_step worker
    sessions: execute_tool wait
      personas: serve_tool wait
  sessions: turn 2
    sessions: chat
      personas: serve_step worker
`;

/** A served persona whose tool waits until it is let go on, and a session of it that has come so far. */
async function waitsInTool(all: Traced, first: Child) {
  const { bus, env } = all;
  const definition = { name: 'worker', model: await scripted([calls('wait'), done]), permissions: ALLOW };
  const tools = `[defineTool({ name: 'wait', description: 'Waits.', inputSchema: z.object({}),
    execute: async (_, { abortSignal: signal }) => { note('runs'); await opened(signal); return 'done'; } })]`;
  const { file, log, open } = await personaModule(definition, tools);
  const worker = new Child(COX_MAIN, ['serve', 'personas', file, '--nats', bus.natsUrl, '--json'], { env });
  ended.push(() => worker.kill());
  await worker.says('"type":"ready"');
  await first.says(/"persona":"worker".*a persona is announced/);
  await bus.command('killed', 'start', { prompt: 'Go.', persona: 'worker', trace: TRACEPARENT });
  await until('the tool to run', async () => (await log()).includes('runs'));
  return open;
}

test('the trace of a run whose host was killed in the middle is one tree, made by both hosts', async () => {
  const all = await traced();
  const { bus, collector } = all;
  const first = await hostOf(all, { COX_HOST_NAME: 'one' });
  const open = await waitsInTool(all, first);
  // What a host has ended and not sent yet goes down with it.
  await until('what has ended was sent', () =>
    ['provision', 'chat', 'serve_step'].every((what) => collector.spans.some(({ name }) => name.startsWith(what))),
  );
  await first.kill();
  await hostOf(all, { COX_HOST_NAME: 'two' });
  await eventOf(bus, 'killed', 'owned');
  await open();
  await endOf(bus, 'killed');
  await runEnded(all);
  const spans = await until('the tree is whole', () => {
    const found = collector.spans.filter(({ traceId }) => traceId === CALLER.traceId);
    return found.length >= TREE.trim().split('\n').length ? found : null;
  });
  expect(treeLines(spans, CALLER.spanId)).toEqual(TREE.trim().split('\n'));
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  expect(spans).toHaveLength(TREE.trim().split('\n').length);
  // The killed host's, the other's, the worker's.
  expect(new Set(spans.map(({ instance }) => instance)).size).toBe(3);
}, 120_000);

test('what a killed host had ended and not sent is missing in the collector, and in cox session trace it is not', async () => {
  const all = await traced();
  const { bus, collector } = all;
  // Nothing of it is received as long as it lives: nobody listens there.
  const first = await hostOf(all, { COX_HOST_NAME: 'one', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' });
  const open = await waitsInTool(all, first);
  await first.kill();
  await hostOf(all, { COX_HOST_NAME: 'two' });
  await eventOf(bus, 'killed', 'owned');
  await open();
  await endOf(bus, 'killed');
  await runEnded(all);
  const linesOfTree = TREE.trim().split('\n').length;
  const spans = await until('all but the two was received', () => {
    const found = collector.spans.filter(({ traceId }) => traceId === CALLER.traceId);
    return found.length >= linesOfTree - 2 ? found : null;
  });
  const named = (prefix: string) => spans.filter(({ name }) => name.startsWith(prefix));
  expect(spans).toHaveLength(linesOfTree - 2);
  expect(named('provision')).toEqual([]);
  expect(named('chat')).toHaveLength(1);
  // The first step that was served stands below an answer that nobody has sent.
  const known = new Set([CALLER.spanId, ...spans.map(({ spanId }) => spanId)]);
  const orphans = spans.filter(({ parentSpanId }) => !known.has(parentSpanId ?? ''));
  expect(orphans.map(({ name }) => name)).toEqual(['serve_step worker']);

  const printed = await cox(['session', 'trace', 'killed', '--nats', bus.natsUrl, '--json']);
  const told = printed.lines.flatMap(spansIn);
  expect(told.filter(({ name }) => name === 'provision')).toHaveLength(1);
  expect(told.find(({ spanId }) => spanId === orphans[0]?.parentSpanId)?.name).toMatch(/^chat/);
}, 120_000);

test('a command over a WebSocket stands below its own traceparent, else below that of the socket', async () => {
  const all = await traced();
  const { bus, collector, env } = all;
  await hostOf(all);
  const gateway = await startGateway(bus, { env });
  ended.push(() => gateway.stop());
  await bus.command('paged', 'start', { prompt: 'Go.', model: await scripted([done], { loop: true }) });
  await endOf(bus, 'paged');
  const page = openSocket<{ type: string; ref?: number; problem?: object }>(gateway, '/v1/sessions/paged/ws');
  await page.seen('a record', ({ type }) => type === 'record');
  page.send({ type: 'command', ref: 1, verb: 'prompt', body: { body: 'More.' }, traceparent: TRACEPARENT });
  await endOf(bus, 'paged', 2);
  const run = await runEnded(all, 2);
  const command = await until('the span of the command', () =>
    collector.spans.find(({ name, traceId }) => name === 'command prompt' && traceId === CALLER.traceId),
  );
  expect(command).toMatchObject({
    parentSpanId: CALLER.spanId,
    kind: 2,
    service: 'coxswain-gateway',
    attributes: { 'gen_ai.conversation.id': 'paged', 'coxswain.verb': 'prompt', 'coxswain.status': 'sent' },
  });
  expect(run.links).toContain(command.spanId);

  page.send({ type: 'command', ref: 2, verb: 'prompt', body: { body: 'More.' }, traceparent: 'nonsense' });
  expect(await page.seen('the problem', ({ ref }) => ref === 2)).toMatchObject({
    problem: { code: 'invalid_field', field: 'traceparent' },
  });
  page.socket.close();

  const opener = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;
  const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/sessions/paged/ws`, {
    headers: { authorization: `Bearer ${gateway.token}`, traceparent: opener },
  });
  ended.push(() => socket.terminate());
  await new Promise<void>((resolve, reject) => void socket.once('open', resolve).once('error', reject));
  socket.send(JSON.stringify({ type: 'command', verb: 'prompt', body: { body: 'More.' } }));
  await endOf(bus, 'paged', 3);
  const third = await runEnded(all, 3);
  const below = await until('its command', () =>
    collector.spans.find(({ name, traceId }) => name === 'command prompt' && traceId === '1'.repeat(32)),
  );
  expect(below.parentSpanId).toBe('2'.repeat(16));
  expect(third.links).toContain(below.spanId);
}, 120_000);
