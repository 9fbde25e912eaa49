/** The part of a Zod schema that parses a value. */
export interface ValueSchema<T> {
  safeParse(value: unknown): { readonly data?: T | undefined };
}

/** The default limit of a message of NATS, bytes. */
const MAX_BYTES = 1024 * 1024;
/** No schema has more members. A strict schema takes a thousand times as long for each unknown member as the JSON parser. */
const MEMBERS_MAX = 64;

/**
 * Parses the JSON value of a message, a key or a text.
 * @param maxBytes a longer value is not parsed.
 * @returns null if it is longer, is not JSON, does not match the schema, or is an object of more than 64 members.
 */
export function valueIn<T>(data: Uint8Array | string, schema: ValueSchema<T>, maxBytes = MAX_BYTES): T | null {
  if (data.length > maxBytes) return null;
  try {
    const value: unknown = JSON.parse(typeof data === 'string' ? data : new TextDecoder().decode(data));
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    if (isObject && Object.keys(value).length > MEMBERS_MAX) return null;
    return schema.safeParse(value).data ?? null;
  } catch {
    // Not JSON.
    return null;
  }
}
