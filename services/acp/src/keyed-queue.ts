/**
 * Runs tasks with the same name one after another, in order of arrival. Tasks with different names run concurrently.
 */
export class KeyedQueue {
  /** The end of the newest task of each name. */
  readonly #newest = new Map<string, Promise<void>>();

  /**
   * Runs a task after the earlier tasks with the same name, whether they succeed or fail. @throws the error of the
   * task.
   */
  async run<T>(name: string, task: () => Promise<T>): Promise<T> {
    const done = (this.#newest.get(name) ?? Promise.resolve()).then(task);
    const settled = done.then(
      () => undefined,
      () => undefined,
    );
    this.#newest.set(name, settled);
    try {
      return await done;
    } finally {
      if (this.#newest.get(name) === settled) this.#newest.delete(name);
    }
  }
}
