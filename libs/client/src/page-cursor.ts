/** Stateless page cursors: the end of a page, encoded for the next request. */
import { ReadRefusedError } from './client-errors.ts';

/** Encodes a position as a cursor. */
export function cursorOf(parts: readonly string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

/** Decodes a cursor. @throws ReadRefusedError `invalid_field` for an invalid cursor. */
export function partsOfCursor(cursor: string, count: number): readonly string[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
    if (Array.isArray(parts) && parts.length === count && parts.every((part) => typeof part === 'string'))
      return parts as string[];
  } catch {
    // The error is thrown below.
  }
  throw cursorUnknown();
}

/** The error for an invalid cursor. */
export function cursorUnknown(): ReadRefusedError {
  return new ReadRefusedError('invalid_field', 'cursor: is not a cursor of a previous page', 'cursor');
}
