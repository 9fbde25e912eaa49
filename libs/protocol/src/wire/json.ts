/**
 * JSON values, references to stored bytes, JSON Pointers, and reasons.
 */
import * as z from 'zod';
import { BOUNDS } from './bounds.ts';

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/**
 * Any JSON value, nested at most {@link BOUNDS}.jsonDepthMax deep. The schema returns the input itself: a copy would
 * lose a member named `__proto__`, and with it the recorded bytes.
 */
export const Json: z.ZodType<Json> = z.custom<Json>((value) => isJson(value, BOUNDS.jsonDepthMax), {
  error: `must be JSON, nested at most ${BOUNDS.jsonDepthMax} deep`,
});

/** A JSON object: call arguments, metadata, settings. */
export const JsonObject: z.ZodType<JsonObject> = objectWithin(BOUNDS.jsonDepthMax);
export type JsonObject = { [key: string]: Json };

/**
 * A JSON object that wraps values of {@link Json}, such as the body of a command or the payload of a hook. It may be
 * nested 16 levels deeper than they are, so that no valid value makes an unreadable record or message.
 */
export const WrapperObject: z.ZodType<JsonObject> = objectWithin(BOUNDS.jsonDepthMax + 16);

function objectWithin(depthMax: number): z.ZodType<JsonObject> {
  return z.custom<JsonObject>(
    (value) => typeof value === 'object' && value !== null && !Array.isArray(value) && isJson(value, depthMax),
    { error: `must be a JSON object, nested at most ${depthMax} deep` },
  );
}

// Not recursive: deeply nested input must not overflow the stack before it is refused.
function isJson(root: unknown, depthMax: number): root is Json {
  const open: [value: unknown, depth: number][] = [[root, 0]];
  for (let next = open.pop(); next; next = open.pop()) {
    const [value, depth] = next;
    if (value === null || typeof value === 'string' || typeof value === 'boolean') continue;
    if (typeof value === 'number') {
      if (!Number.isFinite(value)) return false;
      continue;
    }
    if (typeof value !== 'object' || depth >= depthMax) return false;
    if (!Array.isArray(value)) {
      const prototype = Object.getPrototypeOf(value);
      if (prototype !== Object.prototype && prototype !== null) return false;
    }
    for (const member of Array.isArray(value) ? value : Object.values(value)) open.push([member, depth + 1]);
  }
  return true;
}

/**
 * Reference to bytes that the object store has under this hash: a large field of a record, a file of a message, or the
 * whole text of a truncated result.
 */
export const BlobRef = z.strictObject({
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: z.number().int().nonnegative(),
});
export type BlobRef = z.infer<typeof BlobRef>;

/** The unescaped keys of a JSON Pointer (RFC 6901), from the root. */
export function pointerKeys(pointer: string): string[] {
  return pointer.split('/').slice(1).map(unescapePointerKey);
}

/** Escapes one key for a JSON Pointer (RFC 6901, section 3). */
export function escapePointerKey(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** Reverses {@link escapePointerKey}. */
export function unescapePointerKey(key: string): string {
  return key.replaceAll('~1', '/').replaceAll('~0', '~');
}

/**
 * The end of a switch over a union. The compiler rejects a switch that omits a member.
 * @throws always: a value arrived that the type excludes.
 */
export function assertNever(value: never): never {
  throw new Error(`unexpected ${JSON.stringify(value)}`);
}

/** A reason, such as of a cancel, a denial, a suspension or a deletion: free text, bounded in bytes. */
export const Reason = z.string().refine((text) => new TextEncoder().encode(text).length <= BOUNDS.reasonMaxBytes, {
  error: `may have at most ${BOUNDS.reasonMaxBytes} bytes`,
});
