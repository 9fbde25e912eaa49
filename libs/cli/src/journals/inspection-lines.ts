/** Prints the messages of an inspection, one JSON object per line. */
import { once } from 'node:events';
import { GENESIS_HASH, type JournalRecord } from '@coxswain/protocol';
import { ChainBrokenError, type InspectionMessage, SessionInspector, sha256Hex } from '@coxswain/session';
import { EXIT, type ExitCode, recordNotThere, writeOut } from '../line/mod.ts';
import { exportedRecords } from './exported-records.ts';
import type { OpenJournal } from './journal-source.ts';

/** Prints the messages of a record. Waits for a slow reader. */
export async function printInspection(inspector: SessionInspector, record: JournalRecord): Promise<void> {
  await print(inspector.take(record));
}

async function print(messages: Iterable<InspectionMessage>): Promise<void> {
  for (const message of messages) if (!writeOut(`${JSON.stringify(message)}\n`)) await once(process.stdout, 'drain');
}

/**
 * Prints an exported journal from a record on. @throws ChainBrokenError; CliError `record_not_there`; the errors of
 * {@link exportedRecords}.
 */
export async function printJournal(journal: OpenJournal, from = 1): Promise<ExitCode> {
  let inspector: SessionInspector | null = null;
  let hash: string = GENESIS_HASH;
  let held: InspectionMessage[] = [];
  for await (const { record, bytes } of exportedRecords(journal)) {
    inspector ??= new SessionInspector(record.session_id, { from });
    // A change in a file may leave the state unchanged. The next record detects it, because it has the hash of the
    // original.
    if (record.n === inspector.n + 1 && record.prev_hash !== hash)
      throw new ChainBrokenError(
        `record ${record.n} of ${record.session_id} does not follow record ${inspector.n}: one of them was changed`,
      );
    hash = sha256Hex(bytes);
    // The state before record `from` is printed only after that record was found.
    await print(held);
    held = [];
    if (record.n < from) held = [...inspector.take(record)];
    else await print(inspector.take(record));
  }
  const n = inspector?.n ?? 0;
  if (from > n) throw recordNotThere(`--from ${from}`, n);
  return EXIT.ok;
}
