/** The records that a session has now, also of a session whose start is not recorded yet. */
import { SessionNotFoundError } from './client-errors.ts';

/**
 * Reads a journal that may not exist yet.
 * @returns its records; none for an unknown session. @throws every other error of the journal.
 */
export async function* storedRecords<Entry>(
  journal: AsyncGenerator<Entry, void, undefined>,
): AsyncGenerator<Entry, void, undefined> {
  try {
    yield* journal;
  } catch (error) {
    if (!(error instanceof SessionNotFoundError)) throw error;
  }
}
