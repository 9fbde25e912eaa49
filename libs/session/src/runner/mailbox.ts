/** A mailbox: jobs that are handled one after another, and how long there has been none (RUNNER-5). */
import type { Clock } from '@coxswain/ports';

/** See the top of the file. */
export class Mailbox<Job> {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'yield'>;
  readonly #handle: (job: Job) => Promise<void>;
  readonly #jobs: Job[] = [];
  #working = false;
  #closed = false;
  #emptySinceMs: number;

  /** @param handle handles its own errors: a rejection of it is a broken invariant, and surfaces. */
  constructor(clock: Pick<Clock, 'monotonicMs' | 'yield'>, handle: (job: Job) => Promise<void>) {
    this.#clock = clock;
    this.#handle = handle;
    this.#emptySinceMs = clock.monotonicMs();
  }

  /** Whether nothing is being handled and nothing waits. */
  get isEmpty(): boolean {
    return !this.#working && this.#jobs.length === 0;
  }

  /** Milliseconds since the last job was done; only where it is empty. */
  get emptyForMs(): number {
    return this.#clock.monotonicMs() - this.#emptySinceMs;
  }

  /** Whether such a job waits. */
  some(like: (job: Job) => boolean): boolean {
    return this.#jobs.some(like);
  }

  /** Puts a job behind those that wait. */
  post(job: Job): void {
    if (this.#closed) return;
    this.#jobs.push(job);
    if (this.#working) return;
    this.#working = true;
    void this.#work();
  }

  /** Handles nothing more; what is being handled ends by itself. */
  close(): void {
    this.#closed = true;
    this.#jobs.length = 0;
  }

  async #work(): Promise<void> {
    for (let job = this.#jobs.shift(); job !== undefined && !this.#closed; job = this.#jobs.shift()) {
      await this.#handle(job);
      // An instant model and an instant tool must not starve what arrives from outside.
      await this.#clock.yield();
    }
    this.#working = false;
    this.#emptySinceMs = this.#clock.monotonicMs();
  }
}
