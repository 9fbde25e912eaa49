/** JSON files of one user, which other users must not be able to change or to read. */
import { problemSentences, type StrictlyRead } from '@coxswain/protocol';
import { readRegularFile, UnreadableFileError } from '../regular-file.ts';

/** What such a file contains. `why` is a clause about the file, without its path, and quotes nothing of it. */
export type PrivateJson<T> =
  | { readonly status: 'read'; readonly value: T }
  | { readonly status: 'absent' }
  | { readonly status: 'unusable'; readonly why: string; readonly cause?: unknown };

/** How such a file is read. */
export interface PrivateJsonReading<T> {
  readonly maxBytes: number;
  /** Bits of the mode that the file must not have, and what they mean, as a clause. Windows has no such bits. */
  readonly refused: { readonly mode: number; readonly why: string };
  readonly read: (value: unknown) => StrictlyRead<T>;
}

/** Reads a private JSON file. Never rejects. */
export async function readPrivateJson<T>(
  path: string,
  { maxBytes, refused, read }: PrivateJsonReading<T>,
): Promise<PrivateJson<T>> {
  let json: unknown;
  try {
    const { bytes, mode } = await readRegularFile(path, maxBytes);
    if (process.platform !== 'win32' && (mode & refused.mode) !== 0) return { status: 'unusable', why: refused.why };
    json = JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    // The error of the parser quotes the file.
    if (error instanceof SyntaxError) return { status: 'unusable', why: 'is not JSON' };
    if (error instanceof UnreadableFileError && error.reason === 'not_found') return { status: 'absent' };
    return { status: 'unusable', why: (error as Error).message, cause: error };
  }
  const value = read(json);
  if (value.ok) return { status: 'read', value: value.data };
  return { status: 'unusable', why: `is invalid: ${problemSentences(value.problems).join('; ')}` };
}
