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
export const Json: z.ZodType<Json> = z.custom<Json>((value) => isJson(value), {
  error: `must be JSON, nested at most ${BOUNDS.jsonDepthMax} deep`,
});

/** A JSON object: call arguments, metadata, settings. */
export const JsonObject: z.ZodType<JsonObject> = z.custom<JsonObject>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value) && isJson(value),
  { error: `must be a JSON object, nested at most ${BOUNDS.jsonDepthMax} deep` },
);
export type JsonObject = { [key: string]: Json };

/** Levels that a hook's payload adds around a value, such as the arguments of a call in `calls`: at most three. */
const PAYLOAD_LEVELS = 3;

/**
 * The payload of a hook. The machine puts values around {@link Json} of its full depth, so this JSON object may be nested
 * deeper. Otherwise a record with such a payload could not be read again.
 */
export const HookPayload: z.ZodType<JsonObject> = z.custom<JsonObject>(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    isJson(value, BOUNDS.jsonDepthMax + PAYLOAD_LEVELS),
  { error: `must be a JSON object, nested at most ${BOUNDS.jsonDepthMax + PAYLOAD_LEVELS} deep` },
);

// Not recursive: deeply nested input must not overflow the stack before it is refused.
function isJson(root: unknown, depthMax: number = BOUNDS.jsonDepthMax): root is Json {
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
