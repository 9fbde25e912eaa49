/**
 * A mailbox: jobs are handled one after another (RUNNER-5). It also measures idle time.
 */
import type { Clock } from '@coxswain/ports';

/** A queue of jobs with one handler. */
export class Mailbox<Job> {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'yield'>;
  readonly #handle: (job: Job) => Promise<void>;
  readonly #jobs: Job[] = [];
  #working = false;
  #closed = false;
  #emptySinceMs: number;

  /** @param handle handles its own errors. A rejection is a broken invariant, and surfaces. */
  constructor(clock: Pick<Clock, 'monotonicMs' | 'yield'>, handle: (job: Job) => Promise<void>) {
    this.#clock = clock;
    this.#handle = handle;
    this.#emptySinceMs = clock.monotonicMs();
  }

  /** Whether no job runs or waits. */
  get isEmpty(): boolean {
    return !this.#working && this.#jobs.length === 0;
  }

  /** Milliseconds since the last job ended. Only valid if the mailbox is empty. */
  get emptyForMs(): number {
    return this.#clock.monotonicMs() - this.#emptySinceMs;
  }

  /** Whether a matching job waits. */
  some(like: (job: Job) => boolean): boolean {
    return this.#jobs.some(like);
  }

  /** Appends a job to the queue. */
  post(job: Job): void {
    if (this.#closed) return;
    this.#jobs.push(job);
    if (this.#working) return;
    this.#working = true;
    void this.#work();
  }

  /** Handles no further jobs; the running one completes. */
  close(): void {
    this.#closed = true;
    this.#jobs.length = 0;
  }

  async #work(): Promise<void> {
    for (let job = this.#jobs.shift(); job !== undefined && !this.#closed; job = this.#jobs.shift()) {
      await this.#handle(job);
      // An immediate model and an immediate tool must not starve external events.
      await this.#clock.yield();
    }
    this.#working = false;
    this.#emptySinceMs = this.#clock.monotonicMs();
  }
}
