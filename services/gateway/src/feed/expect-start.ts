/** The check that a watcher can start at a record. */
import type { BusSession, JournalStart } from '@coxswain/client';
import { recordNotThere } from '@coxswain/client/transport';
import { type GatewayContext, Problem } from '../context/mod.ts';
import type { SessionFeed } from './session-feed.ts';

/** The first record that a watcher wants, and the field of its request that says so. */
export type WatchStart =
  | { readonly field: 'from'; readonly from: JournalStart }
  /** `seen` is the number of the last record that the client has received. */
  | { readonly field: 'last-event-id'; readonly seen: number };

/**
 * Checks that the first record exists or is the next one. Otherwise the journal was restored to fewer records, or the
 * session was deleted and started again: the client would miss all records up to that number. A replica may lag for a
 * moment.
 * @returns the first record.
 * @throws Problem `record_not_there` (404); the errors of reading the journal.
 */
export async function expectStart(
  { times }: Pick<GatewayContext, 'times'>,
  session: Pick<BusSession, 'lastNumber'>,
  feed: SessionFeed,
  start: WatchStart,
  signal: AbortSignal,
): Promise<JournalStart> {
  const from = start.field === 'from' ? start.from : start.seen + 1;
  if (from === 'newest') return from;
  await feed.waitForRecord(from - 1, times.replicaLagMs, signal);
  // Watching reports the error of a feed that has ended.
  if (signal.aborted || feed.ended || feed.newest >= from - 1) return from;
  const newest = Math.max(feed.newest, await session.lastNumber());
  if (newest >= from - 1) return from;
  const asked = start.field === 'from' ? from : start.seen;
  throw new Problem('record_not_there', recordNotThere(start.field, asked, newest), { field: start.field });
}
