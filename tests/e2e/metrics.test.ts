/** Every meter of the catalogue moves when what it is about happens, in the services as they are shipped. */
import { writeFile } from 'node:fs/promises';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { connectionTo, connectNats, createNatsJournal } from '@coxswain/adapter-nats';
import { BOUNDS, METRIC_CATALOGUE, type MetricName, sessionRef } from '@coxswain/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startBus, type TestBus } from './kit/bus.ts';
import { calls, done } from './kit/called-tools.ts';
import { Child, COX_MAIN } from './kit/child.ts';
import { type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { endOf, eventOf } from './kit/journal.ts';
import { type OtlpReceiver, startOtlpReceiver } from './kit/otlp-receiver.ts';
import { personaModule } from './kit/persona-service.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { type ScriptTurn, scripted } from './kit/scripts.ts';
import { startHost } from './kit/sessions-host.ts';
import { TRUSTED_BUS } from './kit/trusted-bus.ts';
import { until } from './kit/until.ts';

const PRICES = 'prices: [{ model: "scripted/**", input: 1000, output: 1000 }]';
const ALLOW = { rules: [{ tool: '*', action: 'allow' }] };

let bus: TestBus;
let collector: OtlpReceiver;
let host: Child;
let worker: Child;
let gateway: GatewayUnderTest;
let env: NodeJS.ProcessEnv;
let serial = 0;

/** Where meters are read. */
type Source = 'host' | 'worker' | 'gateway';

const urlOf = ({ stdout }: Child) => /"(?:url|metrics_url)":"(http:[^"]+\/metrics)"/.exec(stdout)?.[1] as string;

async function scrape(source: Source): Promise<string> {
  if (source === 'gateway') return (await gateway.raw('/metrics')).text();
  return (await fetch(urlOf(source === 'host' ? host : worker))).text();
}

/** The sum over all labels, or of those lines that have the given ones; of a histogram how often something was observed. */
async function read(source: Source, name: MetricName, labels = ''): Promise<number> {
  const line = METRIC_CATALOGUE[name].type === 'histogram' ? `${name}_count` : name;
  return (await scrape(source))
    .split('\n')
    .filter((text) => (text.startsWith(`${line}{`) || text.startsWith(`${line} `)) && text.includes(labels))
    .reduce((sum, text) => sum + Number(text.slice(text.lastIndexOf(' ') + 1)), 0);
}

/** Does something, and waits until the meter has gone up. */
async function moves(source: Source, name: MetricName, act: () => Promise<unknown>, labels = ''): Promise<void> {
  const before = await read(source, name, labels);
  await act();
  await until(`${name} to move`, async () => (await read(source, name, labels)) > before);
}

async function start(turns: readonly ScriptTurn[], more: object = {}): Promise<string> {
  const id = `m-${++serial}`;
  await bus.command(id, 'start', { prompt: 'Go.', model: await scripted(turns), permissions: ALLOW, ...more });
  return id;
}

async function ran(turns: readonly ScriptTurn[] = [done], more: object = {}): Promise<string> {
  const id = await start(turns, more);
  await endOf(bus, id);
  return id;
}

/** One that waits for a person, and works no more meanwhile. */
async function waiting(): Promise<string> {
  const id = await start([calls('list_files', { path: '.' }), done], {
    permissions: { rules: [{ tool: '*', action: 'ask' }] },
  });
  await eventOf(bus, id, 'approval_requested');
  return id;
}

beforeAll(async () => {
  bus = await startBus();
  collector = await startOtlpReceiver();
  const prices = join(await scratchFolder('prices'), 'prices.yaml');
  await writeFile(prices, PRICES);
  env = {
    COX_METRICS_PORT: '0',
    COX_PRICES: prices,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_BSP_SCHEDULE_DELAY: '50',
  };
  host = await startHost(bus, { ...env, COX_HOST_NAME: 'one' });
  const definition = { name: 'worker', model: await scripted([done], { loop: true }), permissions: ALLOW };
  const hooks = `[{ event: 'session_start', handler: () => true }]`;
  const tools = `[defineTool({ name: 'wait', description: 'Waits.', inputSchema: z.object({}),
    execute: async (_, { abortSignal: signal }) => { note('runs'); await opened(signal); return 'done'; } })]`;
  const { file } = await personaModule(definition, tools, hooks);
  const args = ['serve', 'personas', file, '--nats', bus.natsUrl, '--json', '--metrics-port', '0'];
  worker = new Child(COX_MAIN, args, { env: { ...env, ...TRUSTED_BUS, COX_METRICS_PORT: '' } });
  await worker.says('"type":"ready"');
  await host.says(/"persona":"worker".*a persona is announced/);
  gateway = await startGateway(bus, { times: { stallMs: 500 } });
}, 120_000);

afterAll(async () => {
  await gateway?.stop();
  await Promise.all([host, worker].map((child) => child?.kill()));
  await collector?.stop();
  await bus?.stop();
  await removeScratch();
}, 120_000);

const events = (id: string) => `/v1/sessions/${id}/events?deltas=false`;

/** What makes each meter move. A meter that is added without a line here does not compile. */
const MOVED: Readonly<Record<MetricName, () => Promise<void>>> = {
  coxswain_sessions: () => moves('host', 'coxswain_sessions', waiting, 'state="function_awaiting_approval"'),
  // Nothing is wrong with a store of one server: the check has run, and says so.
  coxswain_replica_findings: () =>
    expect
      .poll(() => scrape('host'), { timeout: 60_000, interval: 500 })
      .toContain('coxswain_replica_findings{kind="unreadable"} 0'),
  coxswain_stream_fill_ratio: () =>
    expect
      .poll(() => scrape('host'), { timeout: 60_000, interval: 500 })
      .toContain('coxswain_stream_fill_ratio{stream="COX_COMMANDS"} 0'),
  coxswain_rejections_unrecorded_total: async () => {
    const id = await waiting();
    const reason = 'reason="rejections"';
    await moves(
      'host',
      'coxswain_rejections_unrecorded_total',
      async () => {
        for (let i = 0; i <= BOUNDS.rejectionsRecordedMax; i++)
          await bus.command(id, 'steer', { mode: 'nope', body: 'x' });
      },
      reason,
    );
  },
  coxswain_approvals_waiting: () => moves('host', 'coxswain_approvals_waiting', waiting),
  coxswain_approvals_oldest_seconds: async () => {
    await waiting();
    await moves('host', 'coxswain_approvals_oldest_seconds', async () => undefined);
  },
  coxswain_runs_total: () => moves('host', 'coxswain_runs_total', () => ran(), 'stop_reason="end_turn"'),
  coxswain_turns_total: () => moves('host', 'coxswain_turns_total', () => ran()),
  coxswain_commands_total: async () => {
    await moves('host', 'coxswain_commands_total', () => ran(), 'verb="start",outcome="accepted"');
    const id = await ran();
    const refused = () => bus.command(id, 'approve', { call_id: 'none', decision: 'allow' });
    await moves('host', 'coxswain_commands_total', refused, 'verb="approve",outcome="rejected"');
  },
  coxswain_append_seconds: () => moves('host', 'coxswain_append_seconds', () => ran(), 'outcome="stored"'),
  coxswain_queue_age_seconds: () => moves('host', 'coxswain_queue_age_seconds', () => ran(), 'verb="start"'),
  coxswain_fence_rejections_total: async () => {
    const id = await waiting();
    await moves('host', 'coxswain_fence_rejections_total', async () => {
      await writeBehindTheHost(id);
      await bus.command(id, 'cancel', {});
    });
  },
  coxswain_ownership_changes_total: async () => {
    const id = await waiting();
    const other = await startHost(bus, { ...env, COX_HOST_NAME: 'two' });
    try {
      // The first one ends in order: the other goes on with what waits here.
      await host.terminate();
      host = other;
      const decided = () => bus.command(id, 'approve', { call_id: 'c1_1', decision: 'allow' });
      await moves('host', 'coxswain_ownership_changes_total', decided, 'change="taken_over"');
      await endOf(bus, id);
    } finally {
      if (host !== other) await other.kill();
    }
  },
  coxswain_seams_total: () => moves('host', 'coxswain_seams_total', () => ran(), 'seam="iteration_end"'),
  coxswain_seam_delivery_seconds: async () => {
    const id = await waiting();
    await bus.command(id, 'steer', { body: 'Another way.' });
    await eventOf(bus, id, 'steering_received');
    const decided = () => bus.command(id, 'approve', { call_id: 'c1_1', decision: 'allow' });
    await moves('host', 'coxswain_seam_delivery_seconds', decided);
  },
  coxswain_hook_seconds: () =>
    moves(
      'host',
      'coxswain_hook_seconds',
      () => ran([done], { persona: 'worker', model: undefined }),
      'point="session_start"',
    ),
  coxswain_model_seconds: () => moves('host', 'coxswain_model_seconds', () => ran(), 'outcome="complete"'),
  coxswain_tool_seconds: () =>
    moves(
      'host',
      'coxswain_tool_seconds',
      () => ran([calls('list_files', { path: '.' }), done]),
      'tool="list_files",outcome="ok"',
    ),
  coxswain_tokens_total: () =>
    moves('host', 'coxswain_tokens_total', () => ran([{ text: 'x', usage: { input_tokens: 9, output_tokens: 3 } }])),
  coxswain_cost_usd_total: () =>
    moves('host', 'coxswain_cost_usd_total', () => ran([{ text: 'x', usage: { input_tokens: 9, output_tokens: 3 } }])),
  coxswain_served_seconds: () =>
    moves(
      'worker',
      'coxswain_served_seconds',
      () => ran([done], { persona: 'worker', model: undefined }),
      'kind="step",name="worker",outcome="ok"',
    ),
  coxswain_served_running: async () => {
    const script = await scripted([calls('wait'), done]);
    const id = `m-${++serial}`;
    const begin = () => bus.command(id, 'start', { prompt: 'Go.', persona: 'worker', model: script });
    await moves('worker', 'coxswain_served_running', begin, 'kind="tool"');
    await bus.command(id, 'cancel', {});
    await until('nothing to run there', async () => (await read('worker', 'coxswain_served_running')) === 0);
  },
  coxswain_trace_spans_total: () => moves('host', 'coxswain_trace_spans_total', () => ran(), 'outcome="exported"'),
  coxswain_gateway_requests_total: () =>
    moves('gateway', 'coxswain_gateway_requests_total', () => gateway.get('/v1/sessions'), 'route="/v1/sessions"'),
  coxswain_gateway_request_seconds: () =>
    moves('gateway', 'coxswain_gateway_request_seconds', () => gateway.get('/v1/sessions'), 'route="/v1/sessions"'),
  coxswain_gateway_commands_total: async () => {
    const id = await waiting();
    const steer = () => gateway.post(`/v1/sessions/${id}/steer`, { body: 'So.' });
    await moves('gateway', 'coxswain_gateway_commands_total', steer, 'verb="steer"');
  },
  coxswain_gateway_watchers: () => watching('coxswain_gateway_watchers'),
  coxswain_gateway_feeds: () => watching('coxswain_gateway_feeds'),
  coxswain_gateway_events_sent_total: () => watching('coxswain_gateway_events_sent_total'),
  coxswain_gateway_watchers_cut_off_total: async () => {
    const long = { text: 'x'.repeat(200_000), ...calls('list_files', { path: '.' }) };
    const id = await ran([...Array.from({ length: 70 }, () => long), done]);
    const socket = connectSocket({ port: gateway.port, host: '127.0.0.1' });
    socket.on('error', () => undefined).pause();
    const head = [
      'accept: text/event-stream',
      `host: 127.0.0.1:${gateway.port}`,
      `authorization: Bearer ${gateway.token}`,
    ];
    try {
      await moves('gateway', 'coxswain_gateway_watchers_cut_off_total', async () => {
        socket.write(`GET ${events(id)} HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n`);
      });
    } finally {
      socket.destroy();
    }
  },
  coxswain_gateway_refused_total: () =>
    moves('gateway', 'coxswain_gateway_refused_total', () => gateway.get('/v1/sessions/none'), 'session_not_found'),
};

async function watching(name: MetricName): Promise<void> {
  const id = await waiting();
  const leaving = new AbortController();
  const headers = { accept: 'text/event-stream' };
  const watch = () => gateway.raw(events(id), { headers, signal: leaving.signal });
  try {
    await moves('gateway', name, watch);
  } finally {
    leaving.abort();
  }
}

/** Somebody else appends to a session's journal, which only a host that has lost its lease would. */
async function writeBehindTheHost(id: string): Promise<void> {
  const nc = await connectNats(connectionTo({ servers: bus.natsUrl }));
  try {
    const journal = await createNatsJournal(nc);
    const ref = sessionRef(id, 'default');
    const newest = await journal.last(ref);
    const bytes = Buffer.from(JSON.stringify({ attempt: 'somebody-else' }));
    expect(await journal.append(ref, bytes, newest?.fence ?? 0)).toMatchObject({ status: 'stored' });
  } finally {
    await nc.close();
  }
}

describe('a meter moves:', () => {
  test.each(Object.entries(MOVED))('%s', (_name, move) => move(), 120_000);
});

test('each process has the meters that the catalogue says, and no others of ours', async () => {
  const own = { host: await scrape('host'), worker: await scrape('worker'), gateway: await scrape('gateway') };
  for (const [of, text] of Object.entries(own)) {
    const there = new Set(
      [...text.matchAll(/^# TYPE (coxswain_\S+) (\S+)/gm)].map(([, name, type]) => `${name} ${type}`),
    );
    const wanted = Object.entries(METRIC_CATALOGUE)
      .filter(([, entry]) => entry.of.includes(of as Source))
      .map(([name, { type }]) => `${name} ${type}`);
    expect([...there].sort(), of).toEqual(wanted.sort());
  }
});
