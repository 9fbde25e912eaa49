/** The messages of an inspection, one JSON object a line. */
import { once } from 'node:events';
import { GENESIS_HASH, type JournalRecord } from '@coxswain/protocol';
import { ChainBrokenError, readRecord, SessionInspector, sha256Hex } from '@coxswain/session';
import { CliError, EXIT, type ExitCode, usageError } from '../line/cli-error.ts';
import { counted } from '../terminal/counted.ts';
import type { OpenJournal } from './journal-source.ts';

/** Prints what a record adds. A slow reader is waited for. */
export async function printInspection(inspector: SessionInspector, record: JournalRecord): Promise<void> {
  for (const message of inspector.take(record))
    if (!process.stdout.write(`${JSON.stringify(message)}\n`)) await once(process.stdout, 'drain');
}

/** Prints a journal from a record on. */
export async function printJournal({ records, blobs }: OpenJournal, from = 1): Promise<ExitCode> {
  let inspector: SessionInspector | null = null;
  let hash: string = GENESIS_HASH;
  for await (const bytes of records) {
    const record = await readRecord(bytes, blobs);
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
  if (n === 0)
    throw new CliError(
      EXIT.error,
      'record_unreadable',
      'record_unreadable: it holds no record; give a file that cox export has written',
    );
  if (from > n) throw usageError(`--from ${from}: the journal has ${counted(n, 'record')}`);
  return EXIT.ok;
}
