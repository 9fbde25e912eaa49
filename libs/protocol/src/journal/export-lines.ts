/**
 * Exported journals: one record a line, byte for byte as stored, and before the record that first refers to it a line for
 * each thing that lies in the object store: the text of a large field, the whole of a result that was cut, a file. The
 * closing line comes last: it holds the number of records and the hash of the newest one.
 */
import * as z from 'zod';
import { CoxswainError } from '../catalogues/error-codes.ts';
import { canonicalJson } from '../wire/canonical-json.ts';
import { BlobRef } from '../wire/json.ts';
import { problemSentences, readStrictly } from '../wire/schema-problems.ts';
import { blobRefsOf, type JournalRecord } from './record.ts';

/** The line of something that lies in the object store: as text where it is text, else as base64. */
const BlobLine = z.union([
  z.strictObject({ blob: BlobRef.shape.sha256, text: z.string() }),
  z.strictObject({ blob: BlobRef.shape.sha256, base64: z.base64() }),
]);
/** See {@link readBlobLine}. */
export type BlobLine = z.infer<typeof BlobLine>;

/** A line of an exported journal is neither a record nor the bytes of something that lies apart. */
export class ExportLineInvalidError extends CoxswainError {
  constructor(message: string) {
    super('export_line_invalid', message);
  }
}

/** How lines that are no records begin; a record begins with `{"at"`. */
const BEGINNINGS = ['{"blob":', '{"base64":'];

/**
 * Reads a line with a stored object; null if the line may be a record.
 * @throws ExportLineInvalidError for an invalid line of an object.
 */
export function readBlobLine(line: string): BlobLine | null {
  if (!BEGINNINGS.some((beginning) => line.startsWith(beginning))) return null;
  const invalid = (why: string) =>
    new ExportLineInvalidError(`it begins like the bytes of a large field, and is none: ${why}`);
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

/** The last line of an export: what proves its tail. */
const ClosingLine = z.strictObject({
  end: z.strictObject({
    /** SHA-256 of the bytes of the newest record, hex. The next record would hold it as `prev_hash`. */
    hash: z.string().regex(/^[0-9a-f]{64}$/),
    records: z.number().int().positive(),
  }),
});
/** What the closing line of an export says of its records. */
export type ExportEnd = z.infer<typeof ClosingLine>['end'];

/** The closing line of an export does not match its records: the file was changed, or records are missing. */
export class ExportEndMismatchError extends CoxswainError {
  constructor(message: string) {
    super('export_end_mismatch', message);
  }
}

const CLOSING_BEGINNING = '{"end":';

/** The closing line of an export, which the hash chain needs: no later record proves the newest one. */
export function closingLine(end: ExportEnd): string {
  return canonicalJson({ end });
}

/**
 * Reads the closing line of an export, or returns null where the line is another one.
 * @throws ExportLineInvalidError where it begins like a closing line and is not one, byte for byte.
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
 * Compares the closing line with the records that were read.
 * @param read the number of records, and the hash of the newest one; null where there is none.
 * @throws ExportEndMismatchError where they differ.
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

/** The line of something that lies apart. */
export function blobLine(line: BlobLine): string {
  return canonicalJson(line);
}

/** What of the object store a record cannot do without: its large fields, and what its results refer to. */
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
