/**
 * A queue for reads of files that requests name. Node reads files with a small thread pool (4 threads by default),
 * which DNS lookups share. A file system that does not answer, such as an unreachable network mount, blocks one thread
 * per read. Limited concurrency leaves threads for the rest of the host.
 */
import { UnreadableFileError } from '@coxswain/ports/regular-file';

/** Half of Node's default thread pool. */
const AT_ONCE_MAX = 2;
const WAITING_MAX = 256;
const WITHIN_MS = 10_000;

/** A queue of reads, limited in concurrent reads, in waiting reads and in time. */
export class FileReads {
  #active = 0;
  readonly #waiting = new Set<() => void>();

  /**
   * Runs a read once fewer than two others run. A read that exceeds the time limit keeps its slot until it ends.
   * @throws UnreadableFileError 10 s after the call, or at once if 256 reads wait; otherwise the errors of `read`.
   */
  run<T>(read: () => Promise<T>): Promise<T> {
    if (this.#waiting.size >= WAITING_MAX)
      return Promise.reject(new UnreadableFileError('failed', `was not read: ${WAITING_MAX} other files are waiting`));
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#waiting.delete(start);
        reject(new UnreadableFileError('failed', `was not read within ${WITHIN_MS} ms`));
      }, WITHIN_MS);
      const start = () => {
        this.#active += 1;
        read()
          .finally(() => {
            clearTimeout(late);
            this.#active -= 1;
            this.#startNext();
          })
          .then(resolve, reject);
      };
      this.#waiting.add(start);
      this.#startNext();
    });
  }

  #startNext(): void {
    if (this.#active >= AT_ONCE_MAX) return;
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next);
    next();
  }
}
