/**
 * The gateway beside the bare bus: a steer of a session that runs flat out, until its receipt says accepted; and a thousand
 * event streams of one session, each of which has to see every record.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, type IncomingMessage, type RequestOptions, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { newToken, writeTokens } from '@coxswain/gateway';
import { HEADERS, type SessionRef, subjects } from '@coxswain/protocol';
import { createInbox, headers, type NatsConnection } from '@nats-io/nats-core';
import type { Bench, Part } from './bench-part.ts';
import { freshRef, publishCancel, publishStart, runEnded } from './bench-session.ts';
import { median } from './figures.ts';
import { monotonicMs } from './monotonic.ts';
import { inMs, listenFor, pause } from './steering-latency.ts';
import { warmUp, withBench } from './with-bench.ts';

const SAMPLES_A_ROUND = 60;
/** Steers before the first sample: V8 has compiled what they need, as in the host. A gateway that has been up for a while is measured. */
const WARM_UP_STEERS = 1_500;
const WARM_UP_PAUSE_MS = 5;
const WATCHERS = 1_000;
/** Within what a gateway takes of one token. */
const OPENED_A_SECOND = 150;
const WATCHED_TURNS = 50;

/** The part `gateway`. */
export const gatewayLatency: Part = {
  name: 'gateway',
  measure: ({ quick }) =>
    withBench(async (bench) => {
      await warmUp(bench);
      const gateway = await startGateway(bench);
      try {
        const samples = { bare: [] as number[], http: [] as number[] };
        await onRunningSession(bench, async ({ sessionId }) => {
          for (let i = 0; i < WARM_UP_STEERS; i++) {
            await httpSample(gateway, sessionId);
            await setTimeout(WARM_UP_PAUSE_MS);
          }
        });
        for (let round = 0; round < (quick ? 1 : 4); round++) {
          const found = await sampleRound(bench, gateway);
          samples.bare.push(...found.bare);
          samples.http.push(...found.http);
        }
        const watched = await watchByMany(bench, gateway);
        return {
          figures: [
            {
              what: 'gateway: HTTP steer → accepted, p50 ÷ the same over the bare bus',
              value: median(samples.http) / median(samples.bare),
              unit: '×',
              bar: { atMost: 2 },
              from: `${inMs(samples.http)}; bare ${inMs(samples.bare)}`,
            },
            {
              what: `gateway: ${WATCHERS} event streams of one session, streams that saw every record once and in order`,
              value: watched.whole,
              unit: '',
              bar: { atLeast: WATCHERS },
              from: `${watched.records} records each, the last ${Math.round(watched.behindMs)} ms after it was durable`,
            },
            {
              what: 'gateway: events sent a second to those streams',
              value: (watched.records * WATCHERS) / (watched.tookMs / 1_000),
              unit: '/s',
            },
          ],
          detail: { ...samples, watched },
        };
      } finally {
        gateway.agent.destroy();
        const closed = once(gateway.child, 'close');
        gateway.child.kill('SIGTERM');
        await closed;
        await rm(gateway.folder, { recursive: true, force: true });
      }
    }),
};

interface BenchGateway {
  readonly child: ChildProcess;
  readonly folder: string;
  readonly port: number;
  readonly token: string;
  readonly agent: Agent;
}

async function startGateway({ server }: Bench): Promise<BenchGateway> {
  const folder = await mkdtemp(join(tmpdir(), 'cox-bench-gateway-'));
  const file = join(folder, 'tokens.json');
  const { token, stored } = newToken({
    name: 'bench',
    tenant: 'default',
    scopes: ['admin'],
    created_at: new Date().toISOString(),
  });
  await writeTokens(file, [stored]);
  const url = server.url.replace('nats://', `nats://${server.token}@`);
  const args = ['serve', 'gateway', '--nats', url, '--listen', '127.0.0.1:0', '--tokens', file, '--json'];
  // As its users start it: from the bundle, as the host of the bench.
  const cox = resolve(import.meta.dirname, '../../libs/cli/bin/cox.mjs');
  const child = spawn(process.execPath, [cox, ...args], {
    env: { ...process.env, COX_STATE_DIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const { port } = JSON.parse(line) as { port: number };
  return { child, folder, port, token, agent: new Agent({ keepAlive: true }) };
}

async function sampleRound(bench: Bench, gateway: BenchGateway): Promise<{ bare: number[]; http: number[] }> {
  const found = { bare: [] as number[], http: [] as number[] };
  await onRunningSession(bench, async (ref) => {
    for (let i = 0; i < SAMPLES_A_ROUND; i++) {
      await pause();
      found.bare.push(await bareSample(bench.nc, subjects.command(ref, 'steer')));
      await pause();
      found.http.push(await httpSample(gateway, ref.sessionId));
    }
  });
  return found;
}

/** Does something beside a session that runs flat out meanwhile. */
async function onRunningSession({ nc, host }: Bench, work: (ref: SessionRef) => Promise<void>): Promise<void> {
  const ref = freshRef();
  const events = listenFor(nc, subjects.events(ref));
  const running = events.hear('"type":"call_ended"');
  publishStart(nc, ref, 'reading/echo', 1_000_000);
  await running;
  events.stop();
  await work(ref);
  const ended = runEnded(host, ref);
  publishCancel(nc, ref);
  await ended;
}

/** As a bare client waits for a receipt: by an inbox of its own. */
async function bareSample(nc: NatsConnection, subject: string): Promise<number> {
  const inbox = createInbox();
  const subscription = nc.subscribe(inbox, { max: 1 });
  const head = headers();
  head.set(HEADERS.receiptTo, inbox);
  const sentMs = monotonicMs();
  nc.publish(subject, 'look left', { headers: head });
  for await (const message of subscription) {
    const took = monotonicMs() - sentMs;
    const { stage } = message.json<{ stage: string }>();
    if (stage !== 'accepted') throw new Error(`the steer was ${stage}`);
    return took;
  }
  throw new Error('no receipt came');
}

async function httpSample({ port, token, agent }: BenchGateway, sessionId: string): Promise<number> {
  const path = `/v1/sessions/${sessionId}/steer?wait=accepted`;
  const sentMs = monotonicMs();
  const answer = await asked(
    { port, path, agent, method: 'POST', headers: { authorization: `Bearer ${token}`, 'content-type': 'text/plain' } },
    'look left',
  );
  let text = '';
  for await (const chunk of answer) text += String(chunk);
  const took = monotonicMs() - sentMs;
  if (answer.statusCode !== 202) throw new Error(`the steer was answered ${answer.statusCode}: ${text}`);
  return took;
}

function asked(options: RequestOptions, body?: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const made = request(options, resolve);
    made.once('error', reject);
    made.end(body);
  });
}

async function watchByMany({ nc, host }: Bench, gateway: BenchGateway) {
  const ref = freshRef();
  const started = runEnded(host, ref);
  publishStart(nc, ref, 'instant/echo', WATCHED_TURNS);
  let last = await started;
  const streams: { numbers: number[]; answer: IncomingMessage }[] = [];
  for (let i = 0; i < WATCHERS; i++) {
    const answer = await asked({
      port: gateway.port,
      path: `/v1/sessions/${ref.sessionId}/events?deltas=false&from=${last + 1}`,
      headers: { authorization: `Bearer ${gateway.token}`, accept: 'text/event-stream' },
    });
    if (answer.statusCode !== 200) throw new Error(`a watcher was answered ${answer.statusCode}`);
    const stream = { numbers: [] as number[], answer };
    answer.setEncoding('latin1').on('data', (text: string) => {
      for (const [, n] of text.matchAll(/^id: (\d+)$/gm)) stream.numbers.push(Number(n));
    });
    streams.push(stream);
    await setTimeout(1_000 / OPENED_A_SECOND);
  }
  const first = last + 1;
  const beganMs = monotonicMs();
  const ended = runEnded(host, ref);
  nc.publish(subjects.command(ref, 'prompt'), JSON.stringify({ body: 'go on' }));
  last = await ended;
  const durableMs = monotonicMs();
  // Looked at now and then: the driver has enough to do with reading.
  while (!streams.every(({ numbers }) => numbers.at(-1) === last)) {
    if (monotonicMs() - durableMs > 60_000) throw new Error('not all watchers saw the last record within a minute');
    await setTimeout(20);
  }
  const seenMs = monotonicMs();
  const wanted = Array.from({ length: last - first + 1 }, (_, i) => first + i).join();
  for (const { answer } of streams) answer.destroy();
  return {
    records: last - first + 1,
    whole: streams.filter(({ numbers }) => numbers.join() === wanted).length,
    behindMs: seenMs - durableMs,
    tookMs: seenMs - beganMs,
  };
}
