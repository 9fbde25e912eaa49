/**
 * Cancelling a call in flight: from a bare client's publish until the tool's signal aborts. The raw measure is the raw
 * steering path and one request/reply, which a tool in another process would cost; here it is in the host's.
 */
import { subjects } from '@coxswain/protocol';
import type { Bench, Part } from './bench-part.ts';
import { freshRef, publishCancel, publishStart, runEnded } from './bench-session.ts';
import { median, percentile } from './figures.ts';
import { monotonicMs } from './monotonic.ts';
import { publishRawCommand, rawEventSubject, rawRequestTimes } from './raw-path.ts';
import { inMs, type Listening, listenFor, pause } from './steering-latency.ts';
import { warmUp, withBench } from './with-bench.ts';

/** The part `cancel`. */
export const cancelLatency: Part = {
  name: 'cancel',
  measure: ({ quick }) =>
    withBench(async (bench) => {
      const { host, nc } = bench;
      await warmUp(bench);
      const rawId = `cancel-${process.pid}`;
      await host.call('takeRawCommands', { id: rawId, recordBytes: 1_000 });
      const raw = listenFor(nc, rawEventSubject(rawId));
      for (let i = 0; i < 40; i++) await rawSample(bench, rawId, raw, i);
      const ref = freshRef();
      const events = listenFor(nc, subjects.events(ref));
      const samples = { raw: [] as number[], cancel: [] as number[] };
      let started = events.hear('"type":"call_started"');
      publishStart(nc, ref, 'instant/wait', 1_000_000);
      for (let turn = 1; turn <= (quick ? 60 : 240); turn++) {
        await started;
        await pause();
        const callId = `${ref.sessionId}:${turn}`;
        const aborted = host.next((news) =>
          news.news === 'aborted' && news.callId === callId ? news.atMs : undefined,
        );
        started = events.hear('"type":"call_started"');
        const publishedMs = monotonicMs();
        nc.publish(subjects.command(ref, 'cancel_call'), JSON.stringify({ call_id: callId, inject_reminder: false }));
        const tookMs = (await aborted) - publishedMs;
        // The first ones warm the way of a cancel up.
        if (turn > 30) samples.cancel.push(tookMs);
        await pause();
        samples.raw.push(await rawSample(bench, rawId, raw, 1_000 + turn));
      }
      await started;
      const requests = await rawRequestTimes(nc, 500);
      const ended = runEnded(host, ref);
      publishCancel(nc, ref);
      await ended;
      return {
        figures: [
          {
            what: 'cancel_call: publish → the tool’s signal, p50 ÷ raw',
            value: median(samples.cancel) / (median(samples.raw) + median(requests)),
            unit: '×',
            bar: { atMost: 1.5 },
            from: `${inMs(samples.cancel)}; raw path ${inMs(samples.raw)}, request ${inMs(requests)}`,
          },
        ],
        detail: { ...samples, requests: { p50: median(requests), p99: percentile(requests, 0.99) } },
      };
    }),
};

async function rawSample({ nc }: Bench, rawId: string, raw: Listening, serial: number): Promise<number> {
  const text = `raw cancel ${serial} `;
  const durable = raw.hear(text);
  const publishedMs = monotonicMs();
  publishRawCommand(nc, rawId, text);
  return (await durable) - publishedMs;
}
