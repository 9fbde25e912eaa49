/** Recorded journals by name, read once. */
import type { Failure } from '@coxswain/protocol';
import { type RecordedAnswer, readAnswers } from './recorded-answers.ts';

const JOURNALS_KEPT_MAX = 64;

/** Reads journals and keeps their answers. */
export class ReplayStore {
  readonly #kept = new Map<string, readonly RecordedAnswer[]>();
  readonly #readJournal: (name: string) => Promise<string>;

  constructor(readJournal: (name: string) => Promise<string>) {
    this.#readJournal = readJournal;
  }

  /** A journal's answers: kept ones where it was read before. Never rejects. */
  async answers(name: string): Promise<readonly RecordedAnswer[] | Failure> {
    return this.#kept.get(name) ?? (await this.load(name));
  }

  /** Reads a journal afresh. Never rejects. */
  async load(name: string): Promise<readonly RecordedAnswer[] | Failure> {
    let jsonLines: string;
    try {
      jsonLines = await this.#readJournal(name);
    } catch (error) {
      const message = `journal ${name} cannot be read: ${(error as Error).message}`;
      return { code: 'provision_failed', message, retryable: false };
    }
    const answers = readAnswers(name, jsonLines);
    if ('code' in answers) return answers;
    if (this.#kept.size >= JOURNALS_KEPT_MAX) this.#kept.clear();
    this.#kept.set(name, answers);
    return answers;
  }
}
