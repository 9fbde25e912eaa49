/**
 * A consult of a hook over the bus: from the acknowledgement of the record that holds its `hook_call` until its verdict is
 * parsed, beside one raw request and its reply between two processes, right after
 * an append as well. Its appends are counted, not timed.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createNatsJournal } from '@coxswain/adapter-nats';
import { bundle } from '../../scripts/bundle.mjs';
import type { Bench, Part } from './bench-part.ts';
import { freshRef, publishStart, runEnded } from './bench-session.ts';
import { median, percentile, shown } from './figures.ts';
import { writeBundle } from './host-process.ts';
import { warmUp, withBench } from './with-bench.ts';

/** The part `hooks`. */
export const hookConsult: Part = {
  name: 'hooks',
  measure: ({ quick }) =>
    withBench(async (bench) => {
      await warmUp(bench);
      const without = await recordsPerTurn(bench);
      const unasked = (await bench.host.call('takeConsultTimes', null)).length;
      const service = await startService(bench);
      try {
        await bench.host.call('hooksKnown', { count: 1 });
        // The first consults warm both sides up.
        await consults(bench, 300);
        await bench.host.call('rawRequests', { times: 500, ...RAW });
        const rounds = quick ? 3 : 9;
        const ratios: number[] = [];
        const milliseconds = { consult: [] as number[], raw: [] as number[] };
        for (let round = 0; round < rounds; round++) {
          const consult = await consults(bench, 200);
          const raw = await bench.host.call('rawRequests', { times: 400, ...RAW });
          milliseconds.consult.push(...consult);
          milliseconds.raw.push(...raw);
          ratios.push(median(consult) / median(raw));
        }
        const withHook = await recordsPerTurn(bench);
        const p99 = percentile(milliseconds.consult, 0.99) / percentile(milliseconds.raw, 0.99);
        return {
          figures: [
            {
              what: 'hook_call acknowledged → verdict parsed ÷ raw request/reply',
              value: median(ratios),
              unit: '×',
              bar: { atMost: 2 },
              from: `${shown(median(milliseconds.consult))} ms beside ${shown(median(milliseconds.raw))} ms raw; p99 ${shown(p99)} ×`,
            },
            {
              what: 'appends that a consult adds',
              value: withHook - without,
              unit: '',
              bar: { exactly: 1 },
              from: 'counted',
            },
            {
              what: 'consults where no hook is registered',
              value: unasked,
              unit: '',
              bar: { exactly: 0 },
              from: 'counted',
            },
          ],
          detail: { rounds, ratios, milliseconds },
        };
      } finally {
        await service.stop();
      }
    }),
};

/** About as long as what a handler is asked, and as the record before, so that the raw path carries as much. */
const RAW = { bytes: 450, recordBytes: 1_500 } as const;

async function consults({ host, nc }: Bench, turns: number): Promise<number[]> {
  const ref = freshRef();
  const ended = runEnded(host, ref);
  publishStart(nc, ref, 'instant/echo', turns);
  await ended;
  return host.call('takeConsultTimes', null);
}

/** How many records a session grows by with each turn. */
async function recordsPerTurn(bench: Bench): Promise<number> {
  const [short, long] = [await records(bench, 20), await records(bench, 70)];
  return (long - short) / 50;
}

async function records(bench: Bench, turns: number): Promise<number> {
  const ref = freshRef();
  const ended = runEnded(bench.host, ref);
  publishStart(bench.nc, ref, 'instant/echo', turns);
  await ended;
  let count = 0;
  for await (const _record of createNatsJournal(bench.nc).read(ref)) count++;
  return count;
}

/** A hook service as its users run it: a process of its own, from a bundle. */
async function startService({ server }: Bench): Promise<{ stop(): Promise<void> }> {
  writeBundle(await bundle({ 'hook-service': 'tests/bench/hook-service-main.ts' }, 'tests/bench/dist'));
  const child: ChildProcess = fork(join(import.meta.dirname, 'dist/hook-service.mjs'), [
    join(import.meta.dirname, 'hook-policy.mjs'),
    server.url,
    server.token,
  ]);
  const [said] = (await Promise.race([once(child, 'message'), once(child, 'exit')])) as [unknown];
  if (said !== 'ready') throw new Error('the hook service did not start');
  return {
    async stop() {
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      await exited;
    },
  };
}
