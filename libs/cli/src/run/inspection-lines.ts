/** The messages of an inspection, one JSON object a line. */
import { once } from 'node:events';
import { GENESIS_HASH, type JournalRecord } from '@coxswain/protocol';
import { ChainBrokenError, SessionInspector, sha256Hex } from '@coxswain/session';
import { EXIT, type ExitCode, usageError } from '../line/cli-error.ts';
import { counted } from '../terminal/counted.ts';
import { exportedRecords } from './exported-records.ts';
import type { OpenJournal } from './journal-source.ts';

/** Prints what a record adds. A slow reader is waited for. */
export async function printInspection(inspector: SessionInspector, record: JournalRecord): Promise<void> {
  for (const message of inspector.take(record))
    if (!process.stdout.write(`${JSON.stringify(message)}\n`)) await once(process.stdout, 'drain');
}

/** Prints an exported journal from a record on. @throws ChainBrokenError; what {@link exportedRecords} throws. */
export async function printJournal(journal: OpenJournal, from = 1): Promise<ExitCode> {
  let inspector: SessionInspector | null = null;
  let hash: string = GENESIS_HASH;
  for await (const { record, bytes } of exportedRecords(journal)) {
    inspector ??= new SessionInspector(record.session_id, { from });
    // A file may have been changed where no state is: the record behind it has the hash of what it was.
    if (record.n === inspector.n + 1 && record.prev_hash !== hash)
      throw new ChainBrokenError(
        `record ${record.n} of ${record.session_id} does not follow record ${inspector.n}: one of them was changed`,
      );
    hash = sha256Hex(bytes);
    await printInspection(inspector, record);
  }
  const n = inspector?.n ?? 0;
  if (from > n) throw usageError(`--from ${from}: the journal has ${counted(n, 'record')}`);
  return EXIT.ok;
}
