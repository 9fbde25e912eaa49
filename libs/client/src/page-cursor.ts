/** Where a page of a list ends, as a word that the next request brings back. Nothing is remembered for it. */
import { ReadRefusedError } from './client-errors.ts';

/** A word for a place. */
export function cursorOf(parts: readonly string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

/** The place of a word. @throws ReadRefusedError `invalid_field` for one that was not given out. */
export function partsOfCursor(cursor: string, count: number): readonly string[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
    if (Array.isArray(parts) && parts.length === count && parts.every((part) => typeof part === 'string'))
      return parts as string[];
  } catch {
    // Told below.
  }
  throw cursorUnknown();
}

/** What is said of any other word. */
export function cursorUnknown(): ReadRefusedError {
  return new ReadRefusedError('invalid_field', 'cursor: is not a cursor of a previous page', 'cursor');
}
