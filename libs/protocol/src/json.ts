/** JSON values as the protocol carries them. */
import { z } from 'zod';

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Any JSON value; refuses what JSON cannot hold. */
export const Json: z.ZodType<Json> = z.json() as z.ZodType<Json>;

/** A JSON object: call arguments, metadata, settings. */
export const JsonObject = z.record(z.string(), Json);
/** See {@link JsonObject}. */
export type JsonObject = { [key: string]: Json };

/** A field that was too large for its record: its bytes lie in the object store under this hash. */
export const BlobRef = z.strictObject({
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: z.number().int().nonnegative(),
});
/** See {@link BlobRef}. */
export type BlobRef = z.infer<typeof BlobRef>;

/** The end of a switch over a union. Throws where a member was forgotten and the compiler was circumvented. */
export function assertNever(value: never): never {
  throw new Error(`unexpected ${JSON.stringify(value)}`);
}
