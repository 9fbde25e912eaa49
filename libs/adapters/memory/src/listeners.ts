/** Handlers by topic: how watchers hear of what happens on a memory bus. */

/** Handlers by topic. */
export interface Listeners<T> {
  /** @returns a function that ends it; calling that twice is harmless. */
  add(topic: string, handler: (value: T) => void): () => void;
  /** Hands a value to every handler of the topic, each in a microtask of its own. */
  tell(topic: string, value: T): void;
  /** Forgets all handlers. */
  clear(): void;
}

/** An empty set of handlers. */
export function createListeners<T>(): Listeners<T> {
  const byTopic = new Map<string, Set<(value: T) => void>>();
  return {
    add(topic, handler) {
      // A function of its own, so that the same handler may be added twice and removed once.
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
      // The teller must not run its watchers' code, nor fall over it: what a handler throws is an uncaught exception.
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
