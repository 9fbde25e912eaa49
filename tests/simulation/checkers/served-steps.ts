/**
 * Model steps at instances of personas: an attempt is lost only where its instance failed, a step waits only where no
 * instance could take it, and no answer arrives broken.
 */
import type { Checker } from './check.ts';
import { eventsOf } from './check.ts';
import { InstanceLives, pausesOf, quietTimes } from './instances.ts';

/** Hosts look and ask again within this time, milliseconds. */
const LOOKED_WITHIN_MS = 8_000;

/** See the top of the file. */
export const checkServedSteps: Checker = (journal, { history, schedule }) => {
  const wrong: string[] = [];
  const lives = new InstanceLives(history);
  const stored = history.of('stored').filter(({ session }) => session === journal.session);
  for (const { n, event } of eventsOf(journal)) {
    const { atMs = 0, by = '' } = stored.find((one) => one.n === n) ?? {};
    if (event.type === 'persona_step_lost' && !lives.failed(event.instance, 0, atMs))
      wrong.push(`record ${n}: a step is lost, and ${event.instance} lives`);
    if (event.type === 'run_failed' && event.error.code === 'model_stream_broken')
      wrong.push(`record ${n}: a served step is broken: ${event.error.message}`);
    if (event.type !== 'waiting_for_persona') continue;
    const quiet = [...quietTimes(schedule), ...pausesOf(history, by)];
    if (lives.longestServedMs('personas', atMs - LOOKED_WITHIN_MS, atMs, quiet) >= LOOKED_WITHIN_MS)
      wrong.push(`record ${n}: a step waits, and an instance could take it`);
  }
  return wrong;
};
