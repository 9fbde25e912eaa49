/** Work on many things, some at a time. */

/** So many at a time, where nothing else says otherwise: enough to keep a store busy that answers in a millisecond or three. */
export const SIDE_BY_SIDE = 32;

/** Does this for all, {@link SIDE_BY_SIDE} at a time. Rejects with the first rejection, once all that had begun have ended. */
export async function sideBySide<T>(all: readonly T[], one: (item: T) => Promise<void>): Promise<void> {
  const left = all.values();
  const worker = async () => {
    for (const item of left) await one(item);
  };
  const ended = await Promise.allSettled(Array.from({ length: Math.min(SIDE_BY_SIDE, all.length) }, worker));
  for (const result of ended) if (result.status === 'rejected') throw result.reason;
}
