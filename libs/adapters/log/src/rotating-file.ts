/** A log file with a bound: at the bound it is set aside as `<path>.1`, and a new one begins. */
import { closeSync, openSync, renameSync, statSync, writeSync } from 'node:fs';

/** Two of them are kept. */
export const LOG_FILE_MAX_BYTES = 16 * 1024 * 1024;

/** Appends to a file of one process; the folder must exist. */
export class RotatingFile {
  readonly #path: string;
  readonly #maxBytes: number;
  #fd: number;
  #bytes: number;

  /**
   * @param maxBytes of one file; together with the one set aside it is twice as much.
   * @throws the error of the system where the file cannot be opened.
   */
  constructor(path: string, maxBytes: number = LOG_FILE_MAX_BYTES) {
    this.#path = path;
    this.#maxBytes = maxBytes;
    this.#bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    this.#fd = openSync(path, 'a', 0o600);
  }

  /**
   * Appends a text at once.
   * @throws the error of the system where it cannot be written.
   */
  write(text: string): void {
    const length = Buffer.byteLength(text);
    if (this.#bytes > 0 && this.#bytes + length > this.#maxBytes) this.#rotate();
    writeSync(this.#fd, text);
    this.#bytes += length;
  }

  #rotate(): void {
    renameSync(this.#path, `${this.#path}.1`);
    const old = this.#fd;
    this.#fd = openSync(this.#path, 'a', 0o600);
    this.#bytes = 0;
    closeSync(old);
  }
}
