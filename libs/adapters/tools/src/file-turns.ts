/** One writer at a time for each file, among all sessions of this process: of two edits at once none may be lost. */

const lastByFile = new Map<string, Promise<unknown>>();

/** Runs work when all earlier work on the same file has ended. The file is named by its real absolute path. */
export async function inTurn<T>(file: string, work: () => Promise<T>): Promise<T> {
  const before = lastByFile.get(file) ?? Promise.resolve();
  // How the one before ended is its own caller's affair.
  const mine = before.then(work, work);
  lastByFile.set(file, mine);
  try {
    return await mine;
  } finally {
    if (lastByFile.get(file) === mine) lastByFile.delete(file);
  }
}
