/** The replay check: the installed code computes a recorded journal again. */
import { createReadStream } from 'node:fs';
import type { Blobs } from '@coxswain/ports';
import { ExportedJournal, linesOf, replayJournal } from '@coxswain/session';
import { ExpectationError } from './testing-errors.ts';

/**
 * Replays a recorded journal, as `journal.save` or `cox session export` writes it. No model, tool or hook is called.
 * @returns the number of records that are equal, byte for byte.
 * @throws ExpectationError naming the first record and member that differ, or the reason why the file cannot be read;
 *   also for a file without records.
 */
export async function expectReplay(path: string): Promise<{ readonly records: number; readonly sessionId: string }> {
  const exported = new ExportedJournal(linesOf(createReadStream(path)));
  return replayed(path, exported.records(), exported);
}

/** Replays the records of a journal. @throws ExpectationError as {@link expectReplay}, naming `what`. */
export async function replayed(
  what: string,
  records: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  blobs: Pick<Blobs, 'get'>,
): Promise<{ readonly records: number; readonly sessionId: string }> {
  const replay = await replayJournal(records, blobs).catch((error: unknown) => {
    throw replayFailure(what, error);
  });
  // Nothing was compared: the export may have failed.
  if (replay.records === 0) throw new ExpectationError(`${what} cannot be replayed: it has no records`, null, null);
  return replay;
}

/** Converts an error of a replay into the error of a failed test. */
function replayFailure(what: string, error: unknown): Error {
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
