/** Exported journals, read: their records in order, and what lies apart of them. */
import type { Blobs } from '@coxswain/ports';
import { BOUNDS, ExportLineInvalidError, readBlobLine } from '@coxswain/protocol';
import { sha256Hex } from './seal-record.ts';

/** See the top of the file. Read its records once; what lies apart is known as far as they were read. */
export class ExportedJournal implements Pick<Blobs, 'get'> {
  readonly #lines: AsyncIterable<Uint8Array>;
  readonly #elsewhere: Pick<Blobs, 'get'> | undefined;
  readonly #blobs = new Map<string, Uint8Array>();
  #bytes = 0;
  #line = 0;

  /** @param elsewhere where to look for what the lines do not hold. */
  constructor(lines: AsyncIterable<Uint8Array>, elsewhere?: Pick<Blobs, 'get'>) {
    this.#lines = lines;
    this.#elsewhere = elsewhere;
  }

  /** The line that was read last, from 1. */
  get line(): number {
    return this.#line;
  }

  /** What the lines hold beside records, by hash. */
  get blobs(): ReadonlyMap<string, Uint8Array> {
    return this.#blobs;
  }

  async get(sha256: string): Promise<Uint8Array | null> {
    return this.#blobs.get(sha256) ?? (await this.#elsewhere?.get(sha256)) ?? null;
  }

  /**
   * The stored bytes of its records, in order. Empty lines are passed over.
   * @throws ExportLineInvalidError for a line that is neither a record nor what lies apart.
   */
  async *records(): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const bytes of this.#lines) {
      this.#line++;
      if (bytes.length === 0) continue;
      const apart = bytes[2] === B ? readBlobLine(Buffer.from(bytes).toString('utf8')) : null;
      if (apart)
        this.#keep(
          apart.blob,
          Buffer.from('text' in apart ? apart.text : apart.base64, 'text' in apart ? 'utf8' : 'base64'),
        );
      else if (bytes.length > BOUNDS.recordMaxBytes)
        throw new ExportLineInvalidError(`it has ${bytes.length} bytes, a record has at most ${BOUNDS.recordMaxBytes}`);
      else yield bytes;
    }
  }

  #keep(sha256: string, bytes: Uint8Array): void {
    if (sha256Hex(bytes) !== sha256) throw new ExportLineInvalidError(`its bytes are not those of sha256 ${sha256}`);
    this.#bytes += this.#blobs.has(sha256) ? 0 : bytes.length;
    if (this.#bytes > BOUNDS.exportedBlobsMaxBytes)
      throw new ExportLineInvalidError(`what lies apart has more than ${BOUNDS.exportedBlobsMaxBytes} bytes together`);
    this.#blobs.set(sha256, bytes);
  }
}

/** The third byte of a line that is no record: of `{"blob"` and `{"base64"`. */
const B = 0x62;
