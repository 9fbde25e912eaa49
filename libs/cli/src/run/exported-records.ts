/** The records of an exported journal, and what a file is that holds none, or was cut off. */
import { ExportLineInvalidError, type JournalRecord, RecordUnreadableError } from '@coxswain/protocol';
import type { OpenJournal } from './journal-source.ts';

/** How a record and the closing line begin: members stand in the order of their names. */
const BEGINNINGS = ['{"at":', '{"end":'];

/** What people read of an export without a closing line. */
export function unprovenTail(name: string, records: number): string {
  return `the tail is unproven: ${name} has no closing line, so a changed record ${records}, or missing later records, cannot be detected\n`;
}

/** What people read of a session on the bus: nothing in the store holds the hash of its newest record. */
export function unprovenNewest(name: string, records: number): string {
  return `the tail is unproven: no later record of ${name} holds the hash of record ${records}, so a change of it in the store, or the removal of later records, cannot be detected\n`;
}

/**
 * Reads them in order.
 * @throws ExportLineInvalidError where it is no export, or one that was cut off; what `readRecord` throws for a record that
 *   this release cannot read.
 */
export async function* exportedRecords({
  name,
  records,
  blobs,
}: OpenJournal): AsyncGenerator<{ readonly record: JournalRecord; readonly bytes: Uint8Array }, void, undefined> {
  const { readRecord } = await import('@coxswain/session');
  const lines = records[Symbol.asyncIterator]();
  let read = 0;
  for (;;) {
    const line = await lines.next();
    if (line.done) break;
    const bytes: Uint8Array = line.value;
    let record: JournalRecord;
    try {
      record = await readRecord(bytes, blobs);
    } catch (error) {
      throw (await whatItIs(name, read, bytes, error, lines)) ?? error;
    }
    read++;
    yield { record, bytes };
  }
  if (read === 0) throw new ExportLineInvalidError(`${name} is not a session export: it contains no record`);
}

/** Null where it is a record, which another release may read. */
async function whatItIs(
  name: string,
  read: number,
  bytes: Uint8Array,
  error: unknown,
  lines: AsyncIterator<Uint8Array>,
): Promise<ExportLineInvalidError | null> {
  if (!(error instanceof RecordUnreadableError) || isVersioned(bytes)) return null;
  const begins = BEGINNINGS.some((one) => {
    const shown = Buffer.from(bytes.subarray(0, one.length)).toString('latin1');
    return one.startsWith(shown);
  });
  if (begins && (await lines.next()).done)
    return new ExportLineInvalidError(
      `${name} is cut off ${read === 0 ? 'in its first record' : `after record ${read}`}`,
    );
  const where = read === 0 ? 'it does not start with a record' : `the line after record ${read} is not a record`;
  return new ExportLineInvalidError(`${name} is not a session export: ${where}`);
}

/** Whether it says of which version it is, as records and tombstones do. */
function isVersioned(bytes: Uint8Array): boolean {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'));
    return typeof value === 'object' && value !== null && typeof (value as { v?: unknown }).v === 'number';
  } catch {
    return false;
  }
}
