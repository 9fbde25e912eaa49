/** Recorded journals by name: files, or what a reader of the embedder's finds. */
import type { Failure } from '@coxswain/protocol';
import type { FileKind, RefuseFile } from '../kept-files.ts';
import { type RecordedSession, readAnswers } from './recorded-answers.ts';

/** Reads the answers of a journal. Never rejects. `refuse` is asked about the file that was opened, where it is one. */
export type Journals = (name: string, refuse?: RefuseFile) => Promise<RecordedSession | Failure>;

/** Journals in files, of 64 MiB at most: the file and what is read of it are in memory together. */
export const JOURNAL_FILE: FileKind<RecordedSession> = {
  maxBytes: 64 * 1024 * 1024,
  parse: readAnswers,
  unreadable: journalUnreadable,
};

const JOURNALS_KEPT_MAX = 64;

/** Journals that `read` finds, each read once. */
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
