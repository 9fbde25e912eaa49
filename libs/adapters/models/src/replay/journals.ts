/** Recorded journals by name: from files, or from a reader of the embedding program. */
import type { Failure } from '@coxswain/protocol';
import type { FileKind, RefuseFile } from '../kept-files.ts';
import { type RecordedSession, readAnswers } from './recorded-answers.ts';

/** Reads the answers of a journal. Never rejects. `refuse` checks the opened file, if the journal is a file. */
export type Journals = (name: string, refuse?: RefuseFile) => Promise<RecordedSession | Failure>;

/** Journals in files of at most 64 MiB, because the file and its parsed records are in memory together. */
export const JOURNAL_FILE: FileKind<RecordedSession> = {
  maxBytes: 64 * 1024 * 1024,
  parse: readAnswers,
  unreadable: journalUnreadable,
};

const JOURNALS_KEPT_MAX = 64;

/** Reads journals with `read`, and caches the valid ones. */
export function readJournals(read: (name: string) => Promise<string>): Journals {
  const kept = new Map<string, RecordedSession>();
  return async (name) => {
    const before = kept.get(name);
    if (before) return before;
    try {
      const answers = await readAnswers(name, await read(name));
      if ('code' in answers) return answers;
      if (kept.size >= JOURNALS_KEPT_MAX) kept.clear();
      kept.set(name, answers);
      return answers;
    } catch (error) {
      return journalUnreadable(name, `it cannot be read: ${(error as Error).message}`);
    }
  };
}

function journalUnreadable(name: string, why: string): Failure {
  return { code: 'provision_failed', message: `journal ${name}: ${why}`, retryable: false };
}
