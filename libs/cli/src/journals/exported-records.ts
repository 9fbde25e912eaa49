/** Reads the records of an exported journal, and explains files without records or with an incomplete end. */
import { ExportLineInvalidError, type JournalRecord, RecordUnreadableError } from '@coxswain/protocol';
import type { OpenJournal } from './journal-source.ts';

/** The first bytes of a record and of the closing line. Members are sorted by name. */
const LINE_STARTS = ['{"at":', '{"end":'];

/** The notice for an export without a closing line. */
export function unprovenTail(name: string, records: number): string {
  return `the tail is unproven: ${name} has no closing line, so a changed record ${records}, or missing later records, cannot be detected\n`;
}

/** The notice for a session on the bus: the store has no hash of its newest record. */
export function unprovenNewest(name: string, records: number): string {
  return `the tail is unproven: no later record of ${name} holds the hash of record ${records}, so a change of it in the store, or the removal of later records, cannot be detected\n`;
}

/**
 * Reads the records in order.
 * @throws ExportLineInvalidError for a file that is not an export, or is cut off; the errors of `readRecord` for a
 * record that this release cannot read.
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
      throw (await invalidLineError(name, read, bytes, error, lines)) ?? error;
    }
    read++;
    yield { record, bytes };
  }
  if (read === 0) throw new ExportLineInvalidError(`${name} is not a session export: it contains no record`);
}

/** The error for an invalid line; null if the line is a record, possibly of another release. */
async function invalidLineError(
  name: string,
  read: number,
  bytes: Uint8Array,
  error: unknown,
  lines: AsyncIterator<Uint8Array>,
): Promise<ExportLineInvalidError | null> {
  if (!(error instanceof RecordUnreadableError) || isVersioned(bytes)) return null;
  const begins = LINE_STARTS.some((one) => {
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

/** Whether the line has a version number, like records and tombstones. */
function isVersioned(bytes: Uint8Array): boolean {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'));
    return typeof value === 'object' && value !== null && typeof (value as { v?: unknown }).v === 'number';
  } catch {
    return false;
  }
}
