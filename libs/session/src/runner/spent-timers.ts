/** Due timers that a session waits for no more: told by its newest record alone, so that nobody loads it for them. */
import type { Blobs, Journal, StoredCommand } from '@coxswain/ports';
import type { SessionRef } from '@coxswain/protocol';
import { readRecord } from '../journal/load-session.ts';
import { admitTimer } from './admit-command.ts';

/**
 * Whether a session waits for none of these timers. A timer is put into the store only after the record that asked for it
 * is there: once the newest record does not have it open, none will.
 * @throws what the ports throw.
 */
export async function areSpent(
  { journal, blobs }: { readonly journal: Journal; readonly blobs: Pick<Blobs, 'get'> },
  ref: SessionRef,
  timers: readonly StoredCommand[],
): Promise<boolean> {
  const last = await journal.last(ref);
  // What is dropped leaves no record, so no fence says whether this one is the newest: the journal is asked.
  if (!last || (await journal.firstAfter(ref, last.fence))) return false;
  const { effects_open } = await readRecord(last.bytes, blobs);
  return timers.every((command) => {
    const timer = admitTimer(command);
    return timer === null || !effects_open.includes(timer.effect_id);
  });
}
