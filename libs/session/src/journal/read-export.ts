/**
 * Reads an exported journal: its records in order, and its blobs. `importJournal` (import-journal.ts) checks that the records
 * chain and replay.
 */
import type { Blobs } from '@coxswain/ports';
import { BOUNDS, checkExportEnd, ExportLineInvalidError, readBlobLine, readClosingLine } from '@coxswain/protocol';
import { sha256Hex } from './append-record.ts';

/**
 * Reads an exported journal once. It knows the blobs of the lines read so far: those of a record precede the record.
 */
export class ExportedJournal implements Pick<Blobs, 'get'> {
  readonly #lines: AsyncIterable<Uint8Array>;
  readonly #elsewhere: Pick<Blobs, 'get'> | undefined;
  readonly #blobs = new Map<string, Uint8Array>();
  #bytes = 0;
  #line = 0;
  #records = 0;
  #newest: Uint8Array | null = null;
  #isTailProven = false;

  /** @param elsewhere the store of blobs that the export lacks. */
  constructor(lines: AsyncIterable<Uint8Array>, elsewhere?: Pick<Blobs, 'get'>) {
    this.#lines = lines;
    this.#elsewhere = elsewhere;
  }

  /** The number of the last line read, from 1; 0 before the first. A line that could not be read counts. */
  get line(): number {
    return this.#line;
  }

  /**
   * Whether a closing line confirmed the newest record as the last one. False until that line was read, and for an
   * export without a closing line.
   */
  get isTailProven(): boolean {
    return this.#isTailProven;
  }

  /** The blobs read so far, by hash. */
  get blobs(): ReadonlyMap<string, Uint8Array> {
    return this.#blobs;
  }

  async get(sha256: string): Promise<Uint8Array | null> {
    return this.#blobs.get(sha256) ?? (await this.#elsewhere?.get(sha256)) ?? null;
  }

  /**
   * The stored bytes of the export's records, in order. Only their size is checked. Skips empty lines.
   * @throws ExportLineInvalidError for a line that is too long or not valid at its position, or a blob that does not
   *   match its hash; ExportEndMismatchError where the closing line does not match the records. Errors of the lines.
   */
  async *records(): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const bytes of this.#countedLines()) {
      if (bytes.length === 0) continue;
      if (this.#isTailProven) throw new ExportLineInvalidError('a line follows the closing line');
      if (this.#takeApart(bytes) || this.#takeEnd(bytes)) continue;
      if (bytes.length > BOUNDS.recordMaxBytes)
        throw new ExportLineInvalidError(
          `it has ${bytes.length} bytes; the limit of a record is ${BOUNDS.recordMaxBytes}`,
        );
      this.#records++;
      this.#newest = bytes;
      yield bytes;
    }
  }

  async *#countedLines(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for await (const bytes of this.#lines) {
        this.#line++;
        yield bytes;
      }
    } catch (error) {
      // Only errors of the lines arrive here, not those of `records`: the next line could not be read.
      this.#line++;
      throw error;
    }
  }

  #takeApart(line: Uint8Array): boolean {
    const apart = line[2] === B ? readBlobLine(Buffer.from(line).toString('utf8')) : null;
    if (!apart) return false;
    const bytes = 'text' in apart ? Buffer.from(apart.text, 'utf8') : Buffer.from(apart.base64, 'base64');
    this.#keep(apart.blob, bytes);
    return true;
  }

  #takeEnd(line: Uint8Array): boolean {
    const end = line[2] === E ? readClosingLine(Buffer.from(line).toString('utf8')) : null;
    if (!end) return false;
    checkExportEnd(end, { records: this.#records, hash: this.#newest && sha256Hex(this.#newest) });
    this.#isTailProven = true;
    return true;
  }

  #keep(sha256: string, bytes: Uint8Array): void {
    if (sha256Hex(bytes) !== sha256) throw new ExportLineInvalidError(`its bytes do not match sha256 ${sha256}`);
    this.#bytes += this.#blobs.has(sha256) ? 0 : bytes.length;
    if (this.#bytes > BOUNDS.exportedBlobsMaxBytes)
      throw new ExportLineInvalidError(
        `the large fields have more than ${BOUNDS.exportedBlobsMaxBytes} bytes in total`,
      );
    this.#blobs.set(sha256, bytes);
  }
}

/** The third byte of lines that are not records: `{"blob"`, `{"base64"`, and `{"end"` for the closing line. */
const B = 0x62;
const E = 0x65;
