/** A plain turn: one instant answer, one instant call. What it appends, and what it takes beside what the bus takes. */
import { createNatsJournal } from '@coxswain/adapter-nats';
import type { SessionRef } from '@coxswain/protocol';
import type { Bench, Part } from './bench-part.ts';
import { freshRef, publishStart, runEnded } from './bench-session.ts';
import { median, shown } from './figures.ts';
import { warmUp, withBench } from './with-bench.ts';

/** The part `turn`. */
export const plainTurn: Part = {
  name: 'turn',
  measure: ({ quick }) =>
    withBench(async (bench) => {
      await warmUp(bench);
      await warmUp(bench, 'bus/echo');
      await bench.host.call('rawTurns', { turns: 300, recordBytes: 1_000 });
      const appends = await appendsPerTurn(bench);
      const rounds = quick ? 3 : 9;
      const ratios = { instant: [] as number[], bus: [] as number[] };
      const milliseconds = { raw: [] as number[], instant: [] as number[], bus: [] as number[] };
      let recordBytes = 1_000;
      for (let round = 0; round < rounds; round++) {
        const instant = await turns(bench, 'instant/echo');
        recordBytes = instant.recordBytes;
        const raw = median(await bench.host.call('rawTurns', { turns: 200, recordBytes }));
        const bus = await turns(bench, 'bus/echo');
        milliseconds.raw.push(raw);
        milliseconds.instant.push(instant.medianMs);
        milliseconds.bus.push(bus.medianMs);
        ratios.instant.push(instant.medianMs / raw);
        ratios.bus.push(bus.medianMs / raw);
      }
      const from = (kind: 'instant' | 'bus') =>
        `${shown(median(milliseconds[kind]))} ms beside ${shown(median(milliseconds.raw))} ms raw`;
      return {
        figures: [
          { what: 'appends per plain turn', value: appends, unit: '', bar: { exactly: 2 }, from: 'counted' },
          {
            what: 'time per plain turn ÷ (2 raw appends + 2 raw requests)',
            value: median(ratios.instant),
            unit: '×',
            bar: { atMost: 1.5 },
            from: `${from('instant')}, model and tool in the host's process`,
          },
          {
            what: 'the same, model and tool each behind a request',
            value: median(ratios.bus),
            unit: '×',
            bar: { atMost: 1.5 },
            from: from('bus'),
          },
        ],
        detail: { rounds, record_bytes: recordBytes, ratios, milliseconds },
      };
    }),
};

/** How many records a session grows by with each turn. */
async function appendsPerTurn(bench: Bench): Promise<number> {
  const short = await records(bench, 20);
  const long = await records(bench, 70);
  return (long - short) / 50;
}

async function records({ host, nc }: Bench, turns: number): Promise<number> {
  const ref = freshRef();
  const ended = runEnded(host, ref);
  publishStart(nc, ref, 'instant/echo', turns);
  return ended;
}

async function turns({ host, nc }: Bench, model: string): Promise<{ medianMs: number; recordBytes: number }> {
  const ref = freshRef();
  const ended = runEnded(host, ref);
  publishStart(nc, ref, model, 200);
  await ended;
  const times = await host.call('takeTurnTimes', null);
  return { medianMs: median(times[ref.sessionId] ?? []), recordBytes: await medianRecordBytes(nc, ref) };
}

/** How long a record of a turn is, so that the raw appends are as long. */
async function medianRecordBytes(nc: Bench['nc'], ref: SessionRef): Promise<number> {
  const sizes: number[] = [];
  for await (const { bytes } of createNatsJournal(nc).read(ref)) sizes.push(bytes.length);
  return median(sizes);
}
