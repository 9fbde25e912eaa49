/** The part of a Zod schema that parses a value. */
export interface ValueSchema<T> {
  safeParse(value: unknown): { readonly data?: T | undefined };
}

/**
 * Parses the JSON value of a message, a key or a text.
 * @param maxBytes a longer value is not parsed. Default: any length.
 * @returns null if it is longer, is not JSON, or does not match the schema.
 */
export function valueIn<T>(
  data: Uint8Array | string,
  schema: ValueSchema<T>,
  maxBytes: number = Number.POSITIVE_INFINITY,
): T | null {
  if (data.length > maxBytes) return null;
  try {
    return schema.safeParse(JSON.parse(typeof data === 'string' ? data : new TextDecoder().decode(data))).data ?? null;
  } catch {
    // Not JSON.
    return null;
  }
}
