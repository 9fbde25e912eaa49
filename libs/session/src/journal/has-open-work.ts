/** Whether a session needs a host, from its journal alone. */
import type { Blobs, Journal } from '@coxswain/ports';
import { RecordUnreadableError, type SessionRef } from '@coxswain/protocol';
import { readRecord } from './load-session.ts';

interface OpenWorkPorts {
  readonly journal: Journal;
  readonly blobs: Blobs;
}

/**
 * Whether the newest record of a session has open effects, timers among them, so that a host should claim the session.
 * @returns the number of this record; null without open effects. Null also where the record is unreadable or a tombstone,
 *   and for an import without a record of its own.
 * @throws errors of the ports, other than RecordUnreadableError.
 */
export async function openWorkAt(ports: OpenWorkPorts, ref: SessionRef): Promise<number | null> {
  try {
    const last = await ports.journal.last(ref);
    const newest = last && (await readRecord(last.bytes, ports.blobs));
    if (!newest || newest.effects_open.length === 0 || (await isUntouchedImport(ports, ref, newest.n))) return null;
    return newest.n;
  } catch (error) {
    if (error instanceof RecordUnreadableError) return null;
    throw error;
  }
}

/**
 * Whether the session is an import without a record of its own, complete or not. It rests until its first command.
 * @param n the number of its newest record.
 */
async function isUntouchedImport({ journal, blobs }: OpenWorkPorts, ref: SessionRef, n: number): Promise<boolean> {
  const first = await journal.firstAfter(ref, 0);
  const input = first && (await readRecord(first.bytes, blobs)).input;
  const from = input?.type === 'command' ? input.copied_from : undefined;
  return from?.how === 'import' && n <= from.n;
}
