/** Writes log lines to a file descriptor, such as standard error. Its pipe may be full, or may not block. */
import { writeSync } from 'node:fs';

/** Maximum number of bytes that wait for a slow reader. Further lines are left out. */
export const UNWRITTEN_MAX_BYTES = 1024 * 1024;

/** The pause before bytes that did not fit into a pipe are written, in ms. */
const RETRY_MS = 20;

/** Writes whole lines in order. Lines wait while the pipe is full. */
export class DescriptorLog {
  readonly #fd: number;
  readonly #unwritten: Buffer[] = [];
  #bytes = 0;
  #leftOut = 0;
  #retry: NodeJS.Timeout | undefined;

  constructor(fd: number) {
    this.#fd = fd;
  }

  /**
   * Writes one line, with its line feed. If {@link UNWRITTEN_MAX_BYTES} would be exceeded, the line is left out, and a
   * later line reports the number of such lines.
   * @throws the system's error if the descriptor cannot be written, such as EPIPE; waiting lines are then dropped.
   */
  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#bytes + bytes.length > UNWRITTEN_MAX_BYTES) this.#flush();
    if (this.#bytes > 0 && this.#bytes + bytes.length > UNWRITTEN_MAX_BYTES) this.#leftOut += 1;
    else this.#add(bytes);
    this.#flush();
  }

  #add(bytes: Buffer): void {
    this.#unwritten.push(bytes);
    this.#bytes += bytes.length;
  }

  #flush(): void {
    try {
      while (this.#writeFirst());
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') {
        this.#retrySoon();
        return;
      }
      this.#unwritten.length = 0;
      this.#bytes = 0;
      throw error;
    }
  }

  /** Writes a part of the first line. @returns false if no line is left. */
  #writeFirst(): boolean {
    const [first] = this.#unwritten;
    if (first === undefined) {
      if (this.#leftOut === 0) return false;
      const report = { level: 40, time: Date.now(), lines: this.#leftOut, msg: 'log lines were left out: slow reader' };
      this.#leftOut = 0;
      this.#add(Buffer.from(`${JSON.stringify(report)}\n`));
      return true;
    }
    const written = writeSync(this.#fd, first);
    this.#bytes -= written;
    // A pipe takes a part of a line if the whole line does not fit.
    if (written < first.length) this.#unwritten[0] = first.subarray(written);
    else this.#unwritten.shift();
    return true;
  }

  #retrySoon(): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      try {
        this.#flush();
      } catch {
        // The reader has ended. The next line reports it to its writer.
      }
    }, RETRY_MS).unref();
  }
}
