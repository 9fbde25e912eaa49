/** Whether a session still waits for due timers. Its newest record decides, so the session need not be loaded. */
import type { Blobs, Journal, StoredCommand } from '@coxswain/ports';
import type { SessionRef } from '@coxswain/protocol';
import { readRecord } from '../journal/load-session.ts';
import { inputOfTimer } from './check-command.ts';

/**
 * Whether a session waits for none of these timers. A timer is scheduled only after the record that asks for it is stored. So
 * a timer that is not open in the newest record will never be.
 * @returns false also where the session has no record, or where the newest record is not certain. An unreadable timer counts
 *   as one that no session waits for.
 * @throws RecordUnreadableError if the newest record is unreadable or a tombstone, and errors of the ports.
 */
export async function areSpent(
  { journal, blobs }: { readonly journal: Journal; readonly blobs: Pick<Blobs, 'get'> },
  ref: SessionRef,
  timers: readonly StoredCommand[],
): Promise<boolean> {
  const last = await journal.last(ref);
  // A dropped timer leaves no record, so no fence checks whether this record is the newest: ask the stream's leader.
  if (!last || (await journal.firstAfter(ref, last.fence))) return false;
  const { effects_open } = await readRecord(last.bytes, blobs);
  return timers.every((command) => {
    const timer = inputOfTimer(command);
    return timer === null || !effects_open.includes(timer.effect_id);
  });
}
