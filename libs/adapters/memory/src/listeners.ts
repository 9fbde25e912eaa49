/** Handlers by topic. They notify the watchers of a memory bus. */
export interface Listeners<T> {
  /** Adds a handler. @returns a function that removes it; further calls have no effect. */
  add(topic: string, handler: (value: T) => void): () => void;
  /**
   * Calls every handler of the topic with a value, each in its own microtask. Handlers removed before that are skipped.
   */
  tell(topic: string, value: T): void;
  /** Removes all handlers. */
  clear(): void;
}

/** Creates an empty set of handlers. */
export function createListeners<T>(): Listeners<T> {
  const byTopic = new Map<string, Set<(value: T) => void>>();
  return {
    add(topic, handler) {
      // A new function for each call, so that the same handler can be added twice and removed once.
      const own = (value: T) => handler(value);
      const handlers = byTopic.get(topic) ?? new Set();
      byTopic.set(topic, handlers.add(own));
      return () => {
        handlers.delete(own);
        if (handlers.size === 0 && byTopic.get(topic) === handlers) byTopic.delete(topic);
      };
    },
    tell(topic, value) {
      const handlers = byTopic.get(topic);
      if (!handlers) return;
      // Handlers run outside the caller's stack. An error in a handler is an uncaught exception, not the caller's
      // failure.
      for (const handler of handlers) {
        queueMicrotask(() => {
          if (handlers.has(handler)) handler(value);
        });
      }
    },
    clear() {
      for (const handlers of byTopic.values()) handlers.clear();
      byTopic.clear();
    },
  };
}
