/**
 * Detects members named `__proto__` that a schema has dropped. zod's records drop them silently, and the author of the
 * data would find no reason for the loss.
 */

const PROTO = '__proto__';

/**
 * The path of a member named `__proto__` that a schema dropped; null if there is none.
 * @param given the input: any value.
 * @param read the output of the schema. Values that it passed through unchanged are skipped.
 */
export function droppedName(given: unknown, read: unknown): PropertyKey[] | null {
  const open: [given: unknown, read: unknown, path: PropertyKey[]][] = [[given, read, []]];
  for (let next = open.pop(); next; next = open.pop()) {
    const [one, other, path] = next;
    if (one === other || !isObject(one) || !isObject(other) || Array.isArray(one) !== Array.isArray(other)) continue;
    if (Object.hasOwn(one, PROTO) && !Object.hasOwn(other, PROTO)) return [...path, PROTO];
    for (const key of Object.keys(other))
      if (Object.hasOwn(one, key)) open.push([one[key], other[key], [...path, Array.isArray(one) ? Number(key) : key]]);
  }
  return null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
