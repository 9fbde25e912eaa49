/**
 * Questions to hooks: each is answered in its time where an instance could answer it, whatever instances die or stand
 * still meanwhile.
 */
import type { Checker } from './check.ts';
import { InstanceLives, pausesOf, quietTimes } from './instances.ts';

/** A question with less time may run out of it while it moves. */
const JUDGED_FROM_MS = 5_000;
/** While it moves once from an instance that stands still; milliseconds. */
const MOVES_WITHIN_MS = 4_500;

/** See the top of the file. Where single messages get lost, a lost answer is asked for too late. */
export const checkQuestions: Checker = (journal, { history, schedule }) => {
  if (schedule.faults.servedLost > 0) return [];
  const wrong: string[] = [];
  const asked = new Map<string, number>();
  const lives = new InstanceLives(history);
  const late = new Set(history.of('hooked').flatMap(({ key, fate }) => (fate === 'soon' ? [] : [key])));
  for (const { atMs, session, host, key, timeoutMs, end } of history.of('question')) {
    if (session !== journal.session) continue;
    const about = `${host} ${key}`;
    const fromMs = asked.get(about) ?? 0;
    if (end === null) asked.set(about, atMs);
    else if (end !== 'returned' && end !== 'hook_threw' && timeoutMs >= JUDGED_FROM_MS && !late.has(key)) {
      const servedMs = lives.longestServedMs('hooks', fromMs, atMs, [
        ...quietTimes(schedule),
        ...pausesOf(history, host),
      ]);
      if (servedMs > MOVES_WITHIN_MS)
        wrong.push(`${key} was asked by ${host} for ${Math.round(atMs - fromMs)} ms: ${end}`);
    }
  }
  return wrong;
};
