/**
 * Names that a schema leaves out without a word: zod's records have no member `__proto__`, whatever was written. What somebody
 * has named so would be missing later, where nobody knows why.
 */

const PROTO = '__proto__';

/**
 * Where something was named `__proto__` that is not in what a schema made of it; or null.
 * @param given what was written: any value.
 * @param read what the schema has made of it. What it has handed on as it was is not looked into.
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
