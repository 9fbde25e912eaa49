/** The records that a session has now, also of a session whose start is not recorded yet. */
import { SessionNotFoundError } from '@coxswain/client';

/** @returns the records of a journal; none where there is no such session. @throws what else reading the journal throws. */
export async function* storedRecords<Entry>(
  journal: AsyncGenerator<Entry, void, undefined>,
): AsyncGenerator<Entry, void, undefined> {
  try {
    yield* journal;
  } catch (error) {
    if (!(error instanceof SessionNotFoundError)) throw error;
  }
}
