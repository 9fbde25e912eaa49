/** A log file with a size limit. At the limit the file is renamed to `<path>.1`, and a new file starts. */
import { closeSync, openSync, renameSync, statSync, writeSync } from 'node:fs';

/** Maximum size of one log file in bytes. Two files are kept. */
export const LOG_FILE_MAX_BYTES = 16 * 1024 * 1024;

/** Appends to a file that one process writes. The folder must exist. */
export class RotatingFile {
  readonly #path: string;
  readonly #maxBytes: number;
  #fd: number;
  #bytes: number;

  /**
   * @param maxBytes the limit of one file; the renamed file has the same limit. A single longer text exceeds it.
   * @throws the system's error if the file cannot be opened.
   */
  constructor(path: string, maxBytes: number = LOG_FILE_MAX_BYTES) {
    this.#path = path;
    this.#maxBytes = maxBytes;
    this.#bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    this.#fd = openSync(path, 'a', 0o600);
  }

  /**
   * Appends a text synchronously.
   * @throws the system's error if the text cannot be written.
   */
  write(text: string): void {
    const length = Buffer.byteLength(text);
    if (this.#bytes > 0 && this.#bytes + length > this.#maxBytes) this.#rotate();
    writeSync(this.#fd, text);
    this.#bytes += length;
  }

  #rotate(): void {
    try {
      renameSync(this.#path, `${this.#path}.1`);
    } catch (error) {
      // The file was removed or moved meanwhile. The log continues in a new one.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    const old = this.#fd;
    this.#fd = openSync(this.#path, 'a', 0o600);
    this.#bytes = 0;
    closeSync(old);
  }
}
