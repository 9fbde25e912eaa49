/**
 * Old owners do nothing: once a session's journal has a new owner, no worker begins a call for an older one, and no record of
 * an older epoch follows.
 */
import { stoodStill } from '../evidence.ts';
import type { ChaosChecker } from './check.ts';

/** By so much the server's clock and the workers' may disagree about one moment, and a request be under way. */
const UNDER_WAY_MS = 50;

/** See the top of the file. */
export const checkEpochs: ChaosChecker = ({ history, journals, effects }) => {
  const wrong: { session: string; what: string }[] = [];
  const begun = new Map<string, { epoch: number; atMs: number }[]>();
  for (const { session, records, storedAtMs } of journals) {
    const epochs: { epoch: number; atMs: number }[] = [];
    for (const [i, { epoch, n }] of records.entries()) {
      const newest = epochs.at(-1)?.epoch ?? 0;
      if (epoch > newest) epochs.push({ epoch, atMs: storedAtMs[i] as number });
      if (epoch < newest) wrong.push({ session, what: `record ${n} is of epoch ${epoch}, after ${newest}` });
    }
    begun.set(session, epochs);
  }
  for (const { what, session, epoch, atMs, key, pid } of effects) {
    if (what !== 'start') continue;
    const newer = begun.get(session)?.find((one) => one.epoch > epoch);
    if (newer && atMs > newer.atMs + UNDER_WAY_MS && !stoodStill(history, pid, newer.atMs, atMs))
      wrong.push({
        session,
        what: `${key} was begun for epoch ${epoch} ${Math.round(atMs - newer.atMs)} ms after ${newer.epoch} began`,
      });
  }
  return wrong;
};
