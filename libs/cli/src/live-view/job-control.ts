/** Ctrl-Z and `fg`: the terminal is restored before the process stops, and taken again when the process continues. */

/** The kernel ignores a stop if no shell can continue the process. The view returns after this time, in ms. */
const REFUSED_AFTER_MS = 200;

/** The handlers of a stop and of its end. */
export interface JobHandlers {
  /** Restores the terminal. */
  readonly onStop: () => void;
  /** Takes the terminal again. */
  readonly onContinue: () => void;
}

/** Handles SIGTSTP and SIGCONT until closed. */
export class JobControl {
  readonly #handlers: JobHandlers;
  readonly #stop = () => this.stop();
  readonly #continue = () => this.#takeBack();
  #refused: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(handlers: JobHandlers) {
    this.#handlers = handlers;
    process.on('SIGTSTP', this.#stop);
    process.on('SIGCONT', this.#continue);
  }

  /** Stops this process, like Ctrl-Z outside of raw mode. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#handlers.onStop();
    // Without a handler, the signal has its default effect.
    process.off('SIGTSTP', this.#stop);
    process.kill(process.pid, 'SIGTSTP');
    this.#refused = setTimeout(() => this.#takeBack(), REFUSED_AFTER_MS);
  }

  close(): void {
    clearTimeout(this.#refused);
    process.off('SIGTSTP', this.#stop);
    process.off('SIGCONT', this.#continue);
  }

  #takeBack(): void {
    clearTimeout(this.#refused);
    if (!this.#isStopped) return;
    this.#isStopped = false;
    process.on('SIGTSTP', this.#stop);
    this.#handlers.onContinue();
  }
}
