/** The mailbox of a session: it handles one job at a time, in order (RUNNER-5, session-runner.ts). */
import type { Clock } from '@coxswain/ports';

/** Handles jobs one after another, and measures how long it has been empty. */
export class Mailbox<Job> {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'yield'>;
  readonly #handle: (job: Job) => Promise<void>;
  readonly #jobs: Job[] = [];
  #working = false;
  #closed = false;
  #emptySinceMs: number;

  /** @param handle handles one job, with its errors. A rejection is a broken invariant, and ends as unhandled. */
  constructor(clock: Pick<Clock, 'monotonicMs' | 'yield'>, handle: (job: Job) => Promise<void>) {
    this.#clock = clock;
    this.#handle = handle;
    this.#emptySinceMs = clock.monotonicMs();
  }

  /** Whether no job is in progress or queued. */
  get isEmpty(): boolean {
    return !this.#working && this.#jobs.length === 0;
  }

  /** Milliseconds since the last job ended. Only valid while the mailbox is empty. */
  get emptyForMs(): number {
    return this.#clock.monotonicMs() - this.#emptySinceMs;
  }

  /** Whether a queued job matches. The job in progress does not count. */
  some(like: (job: Job) => boolean): boolean {
    return this.#jobs.some(like);
  }

  /** Queues a job, and starts to work if idle. A closed mailbox ignores it. */
  post(job: Job): void {
    if (this.#closed) return;
    this.#jobs.push(job);
    if (this.#working) return;
    this.#working = true;
    void this.#work();
  }

  /** Discards the queued jobs. The job in progress ends by itself. */
  close(): void {
    this.#closed = true;
    this.#jobs.length = 0;
  }

  async #work(): Promise<void> {
    for (let job = this.#jobs.shift(); job !== undefined && !this.#closed; job = this.#jobs.shift()) {
      await this.#handle(job);
      // A model and a tool that answer at once must not starve commands from outside.
      await this.#clock.yield();
    }
    this.#working = false;
    this.#emptySinceMs = this.#clock.monotonicMs();
  }
}
