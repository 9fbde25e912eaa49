/**
 * Due timers that a session no longer waits for. Its newest record shows that, without loading the session.
 */
import type { Blobs, Journal, StoredCommand } from '@coxswain/ports';
import type { SessionRef } from '@coxswain/protocol';
import { readRecord } from '../journal/load-session.ts';
import { admitTimer } from './admit-command.ts';

/**
 * Whether a session waits for none of these timers. A timer is stored only after the record that requires it. If the
 * newest record does not have it open, no later one will.
 * @throws what the ports throw.
 */
export async function areSpent(
  { journal, blobs }: { readonly journal: Journal; readonly blobs: Pick<Blobs, 'get'> },
  ref: SessionRef,
  timers: readonly StoredCommand[],
): Promise<boolean> {
  const last = await journal.last(ref);
  // A dropped timer leaves no record, so no fence checks that this record is the newest: read the journal.
  if (!last || (await journal.firstAfter(ref, last.fence))) return false;
  const { effects_open } = await readRecord(last.bytes, blobs);
  return timers.every((command) => {
    const timer = admitTimer(command);
    return timer === null || !effects_open.includes(timer.effect_id);
  });
}
