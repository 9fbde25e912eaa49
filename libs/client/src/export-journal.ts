/** Exports a journal as self-contained lines. */
import { createHash } from 'node:crypto';
import { blobLine, closingLine, exportedRefsOf } from '@coxswain/protocol';
import type { StoredJournalRecord } from './read-journal.ts';

/**
 * The lines of an exported journal, without line breaks: canonical JSON contains none. The closing line comes last. A
 * journal without records has no lines.
 * @param blob Reads from the object store; null if the object is missing.
 */
export async function* exportLines(
  records: AsyncIterable<Pick<StoredJournalRecord, 'record' | 'bytes'>>,
  blob: (sha256: string) => Promise<Uint8Array | null>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const given = new Set<string>();
  const encoder = new TextEncoder();
  let newest: Uint8Array | null = null;
  let count = 0;
  for await (const { record, bytes } of records) {
    for (const { sha256 } of exportedRefsOf(record, bytes)) {
      if (given.has(sha256)) continue;
      given.add(sha256);
      const found = await blob(sha256);
      if (found) yield encoder.encode(lineOf(sha256, found));
    }
    newest = bytes;
    count++;
    yield bytes;
  }
  if (newest === null) return;
  const hash = createHash('sha256').update(newest).digest('hex');
  yield encoder.encode(closingLine({ hash, records: count }));
}

function lineOf(sha256: string, bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = buffer.toString('utf8');
  return Buffer.from(text, 'utf8').equals(buffer)
    ? blobLine({ blob: sha256, text })
    : blobLine({ blob: sha256, base64: buffer.toString('base64') });
}
