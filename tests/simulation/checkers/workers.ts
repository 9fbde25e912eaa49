/**
 * Calls that instances of tools run: none runs again, and none is given up as interrupted, while the instance that has it
 * lives and answers. None is unavailable while an instance could take it.
 */
import { isRemote } from '../sim-tools.ts';
import type { Checker } from './check.ts';
import { eventsOf } from './check.ts';
import { wasStopped } from './effects.ts';
import { InstanceLives, quietTimes, UNHEARD_MS } from './instances.ts';

/** An instance takes a call within this time, milliseconds: others that stand still may be tried first. */
const TAKEN_WITHIN_MS = 8_000;

/** See the top of the file. */
export const checkWorkers: Checker = (journal, { history, schedule }) => {
  const wrong: string[] = [];
  const lives = new InstanceLives(history);
  const runs = history.of('ran').filter(({ run }) => run.session === journal.session && isRemote(run.tool));
  for (const [index, { run, atMs }] of runs.entries()) {
    // A host that stood still does not know of its successor's run; only what may run again does so then.
    const before = runs
      .slice(0, index)
      .find(
        (one) =>
          one.run.key === run.key &&
          one.run.epoch <= run.epoch &&
          (one.run.host === run.host || !lives.failed(one.run.host, one.atMs, atMs)),
      );
    // An instance that stood still may have got its request before the other one ran.
    const isAgain = before && !lives.failed(run.host, before.atMs, atMs);
    if (isAgain) wrong.push(`${run.key} (${run.tool}) ran again at ${run.host} while ${before.run.host} had it`);
  }
  const storedMs = new Map(
    history.of('stored').flatMap(({ session, n, atMs }) => (session === journal.session ? [[n, atMs] as const] : [])),
  );
  const quiet = quietTimes(schedule);
  const startedOf = new Map<string, { readonly effectId: string; readonly n: number; readonly atMs: number }>();
  const placed = eventsOf(journal);
  for (const { n, event } of placed) {
    const atMs = storedMs.get(n) ?? 0;
    if (event.type === 'call_started') startedOf.set(event.call_id, { effectId: event.effect_id, n, atMs });
    if (event.type !== 'call_ended' || !isRemote(event.tool)) continue;
    const started = startedOf.get(event.call_id);
    const isUnavailable = event.status === 'error' && event.result.detail?.code === 'tool_unavailable';
    if (started && isUnavailable && lives.longestServedMs('tools', started.atMs, atMs, quiet) > TAKEN_WITHIN_MS)
      wrong.push(`record ${n}: ${event.call_id} is unavailable, and an instance could take it`);
    // The instance has stopped its copy of a call that is being stopped; an earlier copy may have taken effect.
    if (event.status !== 'interrupted' || wasStopped(placed, event.call_id, started?.n ?? 0, n)) continue;
    const key = `default.${journal.session}.${started?.effectId}`;
    // What a host that stood still asks for when it goes on comes too late to be known of.
    const had = runs.find(({ run, atMs: ranMs }) => {
      // An instance that starts the call when it goes on may have been given up shortly before.
      const fromMs = atMs - ranMs < UNHEARD_MS ? ranMs - UNHEARD_MS : ranMs;
      return run.key === key && ranMs <= atMs && !lives.failed(run.host, fromMs, atMs);
    });
    if (had) wrong.push(`record ${n}: ${event.call_id} is interrupted, and ${had.run.host} had it`);
  }
  return wrong;
};
