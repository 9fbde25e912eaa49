/** JSON values, references to large ones, and reasons, as the protocol carries them. */
import * as z from 'zod';
import { BOUNDS } from './bounds.ts';

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/**
 * Any JSON value, nested at most {@link BOUNDS}.jsonDepthMax deep; refuses what JSON cannot hold. The value is handed on
 * as it is: a copy would lose a member named `__proto__`, and with it the bytes that a record was sealed with.
 */
export const Json: z.ZodType<Json> = z.custom<Json>(isJson, {
  error: `must be JSON, nested at most ${BOUNDS.jsonDepthMax} deep`,
});

/** A JSON object: call arguments, metadata, settings. */
export const JsonObject: z.ZodType<JsonObject> = z.custom<JsonObject>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value) && isJson(value),
  { error: `must be a JSON object, nested at most ${BOUNDS.jsonDepthMax} deep` },
);
/** See {@link JsonObject}. */
export type JsonObject = { [key: string]: Json };

// Not recursive: what a stranger has nested must not use the stack up before it is refused.
function isJson(root: unknown): root is Json {
  const open: [value: unknown, depth: number][] = [[root, 0]];
  for (let next = open.pop(); next; next = open.pop()) {
    const [value, depth] = next;
    if (value === null || typeof value === 'string' || typeof value === 'boolean') continue;
    if (typeof value === 'number') {
      if (!Number.isFinite(value)) return false;
      continue;
    }
    if (typeof value !== 'object' || depth >= BOUNDS.jsonDepthMax) return false;
    if (!Array.isArray(value)) {
      const prototype = Object.getPrototypeOf(value);
      if (prototype !== Object.prototype && prototype !== null) return false;
    }
    for (const member of Array.isArray(value) ? value : Object.values(value)) open.push([member, depth + 1]);
  }
  return true;
}

/** A field that was too large for its record: its bytes lie in the object store under this hash. */
export const BlobRef = z.strictObject({
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: z.number().int().nonnegative(),
});
/** See {@link BlobRef}. */
export type BlobRef = z.infer<typeof BlobRef>;

/** The keys on the way that a JSON Pointer describes (RFC 6901), unescaped. */
export function pointerKeys(pointer: string): string[] {
  return pointer.split('/').slice(1).map(unescapePointerKey);
}

/** One key of a JSON Pointer as the pointer spells it (RFC 6901, section 3). */
export function escapePointerKey(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** Reverses {@link escapePointerKey}. */
export function unescapePointerKey(key: string): string {
  return key.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** The end of a switch over a union. Throws where a member was forgotten and the compiler was circumvented. */
export function assertNever(value: never): never {
  throw new Error(`unexpected ${JSON.stringify(value)}`);
}

/** The reason of a cancel, a denial, a suspension or a veto: free text within its bound. */
export const Reason = z.string().refine((text) => new TextEncoder().encode(text).length <= BOUNDS.reasonMaxBytes, {
  error: `may have at most ${BOUNDS.reasonMaxBytes} bytes`,
});
