/** Tasks of one name, one after the other in the order in which they came; those of different names do not wait for one another. */
export class KeyedTurns {
  /** The newest of each name. */
  readonly #newest = new Map<string, Promise<void>>();

  /** Runs a task after those that came before it under its name, however they ended. @throws what it throws. */
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
