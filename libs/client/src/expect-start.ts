/** The check that a reader can follow a session from a record on. */
import { ReadRefusedError } from './client-errors.ts';
import type { JournalStart } from './transport.ts';

const LOOK_EVERY_MS = 200;

/**
 * Checks that the first record exists or is the next one. Otherwise the reader would wait for a record that may never
 * come: the journal was restored to fewer records, or the session was deleted and started again.
 * @param lastNumber reads the number of the newest record; 0 without records.
 * @param lagMs how long `lastNumber` may miss the newest records: in a cluster, a replica that lags behind can answer it.
 * @throws ReadRefusedError `record_not_there`; the errors of `lastNumber`.
 */
export async function expectStart(from: JournalStart, lastNumber: () => Promise<number>, lagMs: number): Promise<void> {
  // Record 1 may be waited for, and needs no request.
  if (from === 'newest' || from <= 1) return;
  let newest = await lastNumber();
  for (let waitedMs = 0; from > newest + 1 && waitedMs < lagMs; waitedMs += LOOK_EVERY_MS) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    newest = await lastNumber();
  }
  if (from <= newest + 1) return;
  throw new ReadRefusedError('record_not_there', recordNotThere('from', from, newest), 'from');
}

/** The message of `record_not_there`: a request has named record `n` in a field, and the newest one is `newest`. */
export function recordNotThere(field: string, n: number, newest: number): string {
  return (
    `${field}: record ${n} does not exist: the newest record is ${newest}; ` +
    `read the session from record 1, or from record ${newest + 1} for new records only`
  );
}
