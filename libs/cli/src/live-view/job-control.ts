/** Ctrl-Z and `fg`: the process is stopped with the terminal as it was found, and takes it again when it continues. */

/** A stop that the kernel refuses (no shell is there to continue the process) is over after this time. */
const REFUSED_AFTER_MS = 200;

/** What a stop and its end lead to. */
export interface JobHandlers {
  /** Gives the terminal back. */
  readonly onStop: () => void;
  /** Takes it again. */
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

  /** Stops this process, as Ctrl-Z does outside raw mode. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#handlers.onStop();
    // Without a handler the signal does what it does by default.
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
