/** The first member in which two JSON values differ. */
import { escapePointerKey, type Json } from '@coxswain/protocol';

/** The position as an RFC 6901 pointer, and both values. */
export interface JsonDifference {
  readonly path: string;
  readonly expected: Json | undefined;
  readonly actual: Json | undefined;
}

/** The first member in which two values differ; null where they are equal. `path` is the pointer to the values. */
export function firstDifference(
  expected: Json | undefined,
  actual: Json | undefined,
  path: string,
): JsonDifference | null {
  if (expected === actual) return null;
  const bothObjects =
    typeof expected === 'object' &&
    typeof actual === 'object' &&
    expected !== null &&
    actual !== null &&
    expected !== undefined &&
    actual !== undefined;
  if (!bothObjects || Array.isArray(expected) !== Array.isArray(actual)) return { path, expected, actual };
  const a = expected as { [key: string]: Json };
  const b = actual as { [key: string]: Json };
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const step = `${path}/${escapePointerKey(key)}`;
    const difference = firstDifference(a[key], b[key], step);
    if (difference) return difference;
  }
  return null;
}
