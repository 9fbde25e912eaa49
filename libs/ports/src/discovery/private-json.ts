/** JSON files of one user. Other users must not be able to change them or, for some files, to read them. */
import { problemSentences, type StrictlyRead } from '@coxswain/protocol';
import { readRegularFile, UnreadableFileError } from '../regular-file.ts';

/** The result of reading a private file. `why` is a clause about the file, without its path and without its values. */
export type PrivateJson<T> =
  | { readonly status: 'read'; readonly value: T }
  | { readonly status: 'absent' }
  | { readonly status: 'unusable'; readonly why: string; readonly cause?: unknown };

/** The options for reading a private file. */
export interface PrivateJsonReading<T> {
  readonly maxBytes: number;
  /** Mode bits that the file must not have, and a clause that says what they mean. Not checked on Windows. */
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
    // The parser's error quotes the content of the file.
    if (error instanceof SyntaxError) return { status: 'unusable', why: 'is not JSON' };
    if (error instanceof UnreadableFileError && error.reason === 'not_found') return { status: 'absent' };
    return { status: 'unusable', why: (error as Error).message, cause: error };
  }
  const value = read(json);
  if (value.ok) return { status: 'read', value: value.data };
  return { status: 'unusable', why: `is invalid: ${problemSentences(value.problems).join('; ')}` };
}
