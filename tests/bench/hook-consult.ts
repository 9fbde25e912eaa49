/**
 * A consult of a hook over the bus: from the acknowledgement of the record that holds its `hook_call` until its verdict is
 * parsed, beside one raw request and its reply: between the same two processes, of the same bytes, to a queue group, and
 * right after an append as well. Its appends are counted, not timed.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createNatsJournal } from '@coxswain/adapter-nats';
import { DEFAULT_TENANT, subjects } from '@coxswain/protocol';
import type { Msg } from '@nats-io/nats-core';
import { bundle } from '../../scripts/bundle.mjs';
import type { Bench, Part } from './bench-part.ts';
import { freshRef, publishStart, runEnded } from './bench-session.ts';
import { median, percentile, shown } from './figures.ts';
import { writeBundle } from './host-process.ts';
import type { AskedBytes } from './raw-path.ts';
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
        const bytes = await askedBytes(bench);
        // The first ones warm both sides up.
        await consults(bench, 400);
        await bench.host.call('rawRequests', { times: 400, bytes });
        const rounds = quick ? 3 : 9;
        const ratios: number[] = [];
        const milliseconds = { consult: [] as number[], raw: [] as number[] };
        for (let round = 0; round < rounds; round++) {
          const consult = await consults(bench, 200);
          const raw = await bench.host.call('rawRequests', { times: 200, bytes });
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
          detail: { rounds, bytes, ratios, milliseconds },
        };
      } finally {
        await service.stop();
      }
    }),
};

/** What a consult carries, looked at on the bus: the raw path carries as much. */
async function askedBytes(bench: Bench): Promise<AskedBytes> {
  const { nc } = bench;
  const lengths = new Map<string, number>();
  let question: Msg | undefined;
  const tap = nc.subscribe('>', {
    callback(_error, message) {
      lengths.set(message.subject, message.data.length);
      if (message.subject.startsWith(subjects.hook(DEFAULT_TENANT, 'hook-policy'))) question = message;
    },
  });
  const ref = freshRef();
  const ended = runEnded(bench.host, ref);
  publishStart(nc, ref, 'instant/echo', 2);
  await ended;
  await nc.flush();
  tap.unsubscribe();
  await bench.host.call('takeConsultTimes', null);
  const answer = lengths.get(question?.reply ?? '');
  if (!question || answer === undefined) throw new Error('nobody was asked');
  for await (const { bytes } of createNatsJournal(nc).read(ref))
    if (Buffer.from(bytes).includes('"type":"hook_call"'))
      return { record: bytes.length, question: question.data.length, answer };
  throw new Error('the question stands in no record');
}

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
