/**
 * Exported journals: one record per line, byte for byte as stored. A line with a stored object (a large field, the
 * whole of a truncated result, a file) precedes the first record that refers to it. The closing line comes last, with
 * the number of records and the hash of the newest one.
 */
import * as z from 'zod';
import { CoxswainError } from '../catalogues/error-codes.ts';
import { canonicalJson } from '../wire/canonical-json.ts';
import { BlobRef } from '../wire/json.ts';
import { problemSentences, readStrictly } from '../wire/schema-problems.ts';
import { blobRefsOf, type JournalRecord } from './record.ts';

/** The line of a stored object: `blob` for text, `base64` for other bytes. */
const BlobLine = z.union([
  z.strictObject({ blob: BlobRef.shape.sha256, text: z.string() }),
  z.strictObject({ blob: BlobRef.shape.sha256, base64: z.base64() }),
]);
/** The line of a stored object, as {@link readBlobLine} returns it. */
export type BlobLine = z.infer<typeof BlobLine>;

/** A line of an exported journal is invalid, out of place or too long; or the export contains no record. */
export class ExportLineInvalidError extends CoxswainError {
  constructor(message: string) {
    super('export_line_invalid', message);
  }
}

/** First bytes of lines with objects. A record starts with `{"at"`. */
const BEGINNINGS = ['{"blob":', '{"base64":'];

/**
 * Reads a line with a stored object; null for any other line.
 * @throws ExportLineInvalidError for an invalid line of an object.
 */
export function readBlobLine(line: string): BlobLine | null {
  if (!BEGINNINGS.some((beginning) => line.startsWith(beginning))) return null;
  const invalid = (why: string) =>
    new ExportLineInvalidError(`it begins like the line of a stored object, and is none: ${why}`);
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw invalid(`it is not JSON: ${(error as Error).message}`);
  }
  const read = readStrictly(BlobLine, value);
  if (!read.ok) throw invalid(problemSentences(read.problems).join('; '));
  return read.data;
}

/** The last line of an export. It proves that the export is complete. */
const ClosingLine = z.strictObject({
  end: z.strictObject({
    /** SHA-256 of the bytes of the newest record, hex. The next record would contain it as `prev_hash`. */
    hash: z.string().regex(/^[0-9a-f]{64}$/),
    records: z.number().int().positive(),
  }),
});
/** The content of the closing line. */
export type ExportEnd = z.infer<typeof ClosingLine>['end'];

/** The closing line of an export does not match its records: the file was changed, or records are missing. */
export class ExportEndMismatchError extends CoxswainError {
  constructor(message: string) {
    super('export_end_mismatch', message);
  }
}

const CLOSING_BEGINNING = '{"end":';

/** The closing line of an export. The hash chain needs it: no later record proves the newest one. */
export function closingLine(end: ExportEnd): string {
  return canonicalJson({ end });
}

/**
 * Reads the closing line of an export, or returns null for any other line.
 * @throws ExportLineInvalidError if it starts like a closing line, and is invalid or not canonical JSON.
 */
export function readClosingLine(line: string): ExportEnd | null {
  if (!line.startsWith(CLOSING_BEGINNING)) return null;
  const invalid = (why: string) => new ExportLineInvalidError(`the closing line is invalid: ${why}`);
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw invalid(`it is not JSON: ${(error as Error).message}`);
  }
  const read = readStrictly(ClosingLine, value);
  if (!read.ok) throw invalid(problemSentences(read.problems).join('; '));
  if (closingLine(read.data.end) !== line) throw invalid('it is not canonical JSON');
  return read.data.end;
}

/**
 * Compares the closing line with the records of the export.
 * @param read the number of records, and the hash of the newest one; null without records.
 * @throws ExportEndMismatchError if they differ.
 */
export function checkExportEnd(end: ExportEnd, read: { readonly records: number; readonly hash: string | null }): void {
  if (end.records !== read.records)
    throw new ExportEndMismatchError(
      `the closing line counts ${end.records} records, and the export holds ${read.records}: the file was cut or changed`,
    );
  if (end.hash !== read.hash)
    throw new ExportEndMismatchError(
      `record ${read.records} does not have the hash of the closing line: one of the two was changed`,
    );
}

/** Formats the line of a stored object. `exportJournal` (libs/client) writes it before the first record that refers to it. */
export function blobLine(line: BlobLine): string {
  return canonicalJson(line);
}

/**
 * The stored objects that an export of a record contains: its large fields, and the objects that its results refer to.
 */
export function exportedRefsOf({ events }: Pick<JournalRecord, 'events'>, bytes: Uint8Array): readonly BlobRef[] {
  const refs = [...blobRefsOf(bytes)];
  for (const event of events) {
    if (event.type !== 'call_ended') continue;
    const { content, detail } = event.result;
    const whole = BlobRef.safeParse(detail?.whole);
    if (whole.success) refs.push(whole.data);
    for (const part of content) if (part.type === 'file' && typeof part.data !== 'string') refs.push(part.data);
  }
  return refs;
}
