/** The replay check: a recorded journal, computed again by the code that is installed now. */
import { createReadStream } from 'node:fs';
import { ExportedJournal, linesOf, replayJournal } from '@coxswain/session';
import { ExpectationError } from './testing-errors.ts';

/**
 * Replays a recorded journal, one that `journal.save` or `cox session export` has written. No model, tool or hook is asked.
 * @returns how many records came out the same, byte for byte.
 * @throws ExpectationError naming the record and the member that come out otherwise, or why it cannot be read.
 */
export async function expectReplay(path: string): Promise<{ readonly records: number; readonly sessionId: string }> {
  const exported = new ExportedJournal(linesOf(createReadStream(path)));
  try {
    return await replayJournal(exported.records(), exported);
  } catch (error) {
    throw replayFailure(path, error);
  }
}

/** What a replay has thrown, as a test tells it. */
export function replayFailure(what: string, error: unknown): Error {
  const { code, message, n, path, expected, actual } = error as Error & {
    readonly code?: string;
    readonly n?: number;
    readonly path?: string;
    readonly expected?: unknown;
    readonly actual?: unknown;
  };
  if (code !== 'replay_diverged')
    return new ExpectationError(
      `${what} cannot be replayed: ${code === undefined || message.startsWith(code) ? '' : `${code}: `}${message}`,
      null,
      null,
    );
  const said = [
    `${what} does not replay: ${message}`,
    'The installed code computes a different record than the code that wrote it, or the file was changed.',
  ];
  return new ExpectationError(said.join('\n'), { n, path, value: expected }, { n, path, value: actual });
}
