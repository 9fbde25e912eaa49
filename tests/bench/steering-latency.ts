/**
 * Steering a session that runs flat out: from a bare client's publish until `steering_received` is durable, seen where
 * everyone sees it, on the session's events subject; and on, until it stands in the model's next prompt.
 *
 * The raw path has the same hops by the least code: publish, delivery, direct get, fenced append, republish.
 */
import { subjects } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import type { Bench, Part } from './bench-part.ts';
import { freshRef, publishCancel, publishStart, runEnded } from './bench-session.ts';
import { median, percentile, shown } from './figures.ts';
import { monotonicMs } from './monotonic.ts';
import { publishRawCommand, rawEventSubject } from './raw-path.ts';
import { warmUp, withBench } from './with-bench.ts';

/** As long as a record of a plain turn. */
const RECORD_BYTES = 1_000;
const SAMPLES_A_ROUND = 60;

interface Samples {
  /** With nothing else going on. */
  readonly raw: number[];
  /** While the session runs. */
  readonly rawBeside: number[];
  readonly durable: number[];
  readonly prompt: number[];
}

/** The part `steering`. */
export const steeringLatency: Part = {
  name: 'steering',
  measure: ({ quick }) =>
    withBench(async (bench) => {
      await warmUp(bench);
      const rawId = `steer-${process.pid}`;
      await bench.host.call('takeRawCommands', { id: rawId, recordBytes: RECORD_BYTES });
      const raw = listenFor(bench.nc, rawEventSubject(rawId));
      const samples: Samples = { raw: [], rawBeside: [], durable: [], prompt: [] };
      // The first ones warm the raw path up.
      for (let i = 0; i < 40; i++) await rawSample(bench, rawId, raw);
      for (let round = 0; round < (quick ? 2 : 6); round++) await sampleRound(bench, rawId, raw, samples);
      const beside = `raw ${inMs(samples.raw)}; raw beside the running session ${inMs(samples.rawBeside)}`;
      const ratio = (share: number) => percentile(samples.durable, share) / percentile(samples.raw, share);
      return {
        figures: [
          {
            what: 'steering: publish → steering_received durable, p50 ÷ raw',
            value: ratio(0.5),
            unit: '×',
            bar: { atMost: 1.5 },
            from: `${inMs(samples.durable)}; ${beside}`,
          },
          {
            what: 'steering: publish → steering_received durable, p99 ÷ raw',
            value: ratio(0.99),
            unit: '×',
            bar: { atMost: 2 },
            from: `${samples.durable.length} samples`,
          },
          {
            what: 'steering: publish → the model’s next prompt, p50',
            value: median(samples.prompt),
            unit: 'ms',
            from: inMs(samples.prompt),
          },
        ],
        detail: samples,
      };
    }),
};

async function sampleRound(bench: Bench, rawId: string, raw: Listening, samples: Samples): Promise<void> {
  const { host, nc } = bench;
  for (let i = 0; i < SAMPLES_A_ROUND; i++) {
    await pause();
    samples.raw.push(await rawSample(bench, rawId, raw));
  }
  const ref = freshRef();
  const events = listenFor(nc, subjects.events(ref));
  const running = events.hear('"type":"call_ended"');
  publishStart(nc, ref, 'reading/echo', 1_000_000);
  await running;
  for (let i = 0; i < SAMPLES_A_ROUND; i++) {
    await pause();
    const text = `steer ${process.pid}-${i}`;
    const seen = host.next((news) => (news.news === 'seen' && news.text === text ? news.atMs : undefined));
    const durable = events.hear(text);
    const publishedMs = monotonicMs();
    nc.publish(subjects.command(ref, 'steer'), text);
    samples.durable.push((await durable) - publishedMs);
    samples.prompt.push((await seen) - publishedMs);
    await pause();
    samples.rawBeside.push(await rawSample(bench, rawId, raw));
  }
  const ended = runEnded(host, ref);
  publishCancel(nc, ref);
  await ended;
  events.stop();
}

let rawSerial = 0;

async function rawSample({ nc }: Bench, rawId: string, raw: Listening): Promise<number> {
  const text = `raw command ${++rawSerial} `;
  const durable = raw.hear(text);
  const publishedMs = monotonicMs();
  publishRawCommand(nc, rawId, text);
  return (await durable) - publishedMs;
}

/** Listens on a subject for texts. */
export interface Listening {
  /** When a message that holds `text` came, on the clock of {@link monotonicMs}. One text at a time. */
  hear(text: string): Promise<number>;
  stop(): void;
}

/** Listens. A text that is not heard within a minute ends the part. */
export function listenFor(nc: NatsConnection, subject: string): Listening {
  let expected: { text: string; resolve: (atMs: number) => void } | null = null;
  const subscription = nc.subscribe(subject, {
    callback(error, message) {
      if (error || !expected) return;
      const { data } = message;
      if (!Buffer.from(data.buffer, data.byteOffset, data.byteLength).includes(expected.text)) return;
      expected.resolve(monotonicMs());
      expected = null;
    },
  });
  return {
    hear: (text) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`never heard on ${subject}: ${text}`)), 60_000);
        const heard = (atMs: number) => {
          clearTimeout(timer);
          resolve(atMs);
        };
        expected = { text, resolve: heard };
      }),
    stop: () => subscription.unsubscribe(),
  };
}

/** As the peer does: 20 to 40 ms, so that no rhythm of the session is met again and again. */
export function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20 + Math.random() * 20));
}

/** Samples in short. */
export function inMs(samples: readonly number[]): string {
  return `p50 ${shown(median(samples))} p99 ${shown(percentile(samples, 0.99))} ms`;
}
