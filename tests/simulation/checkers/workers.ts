/**
 * Calls that workers run: none runs again, and none is given up as interrupted, while the worker that has it lives.
 */
import { isRemote } from '../sim-tools.ts';
import { WORKER_KILLED } from '../tool-workers.ts';
import type { Checker } from './check.ts';
import { eventsOf } from './check.ts';

/** See the top of the file. */
export const checkWorkers: Checker = (journal, { history }) => {
  const wrong: string[] = [];
  const diedMs = new Map(
    history.of('host').flatMap(({ host, did, atMs }) => (did === WORKER_KILLED ? [[host, atMs] as const] : [])),
  );
  const livedAt = (worker: string, atMs: number) => (diedMs.get(worker) ?? Number.POSITIVE_INFINITY) > atMs;
  const runs = history
    .of('ran')
    .filter(({ run }) => run.session === journal.session && isRemote(run.tool) && run.host.startsWith('worker'));
  for (const [index, { run, atMs }] of runs.entries()) {
    // A host that stood still does not know of its successor's run; only what may run again does so then.
    const before = runs
      .slice(0, index)
      .find((one) => one.run.key === run.key && one.run.epoch <= run.epoch && livedAt(one.run.host, atMs));
    if (before) wrong.push(`${run.key} (${run.tool}) ran again at ${run.host} while ${before.run.host} had it`);
  }
  const storedMs = new Map(
    history.of('stored').flatMap(({ session, n, atMs }) => (session === journal.session ? [[n, atMs] as const] : [])),
  );
  const effectOf = new Map<string, string>();
  for (const { n, event } of eventsOf(journal)) {
    if (event.type === 'call_started') effectOf.set(event.call_id, event.effect_id);
    if (event.type !== 'call_ended' || event.status !== 'interrupted') continue;
    const key = `default.${journal.session}.${effectOf.get(event.call_id)}`;
    // What a host that stood still asks for when it goes on comes too late to be known of.
    const endedMs = storedMs.get(n) ?? 0;
    const had = runs.find(({ run, atMs }) => run.key === key && atMs <= endedMs && livedAt(run.host, endedMs));
    if (had) wrong.push(`record ${n}: ${event.call_id} is interrupted, and ${had.run.host} had it`);
  }
  return wrong;
};
