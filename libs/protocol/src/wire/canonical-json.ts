/**
 * JSON Canonicalization Scheme, RFC 8785 (https://www.rfc-editor.org/rfc/rfc8785). The same value always gives the same
 * bytes. The hash chain and byte-for-byte replay depend on it.
 */

/**
 * The canonical text of a JSON value. Members with the value `undefined` are omitted, as in JSON.stringify. Lone
 * surrogates are written as escapes, although RFC 8785 3.2.2.2 refuses them: a copied record may contain them.
 * @throws TypeError for values outside JSON: NaN, infinities, functions, symbols, bigint, and undefined other than as a
 *   member.
 */
export function canonicalJson(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return text(value);
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError(`canonical JSON cannot hold ${value}`);
      // RFC 8785 3.2.2.3 requires the number format of ECMAScript.
      return `${value}`;
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      return Array.isArray(value) ? canonicalArray(value) : canonicalObject(value as Record<string, unknown>);
    default:
      throw new TypeError(`canonical JSON cannot hold a ${typeof value}`);
  }
}

// Most strings are short and need no escapes. This test is faster than JSON.stringify.
const PLAIN_MAX_CHARS = 256;
const NOT_PLAIN = /[^\x20\x21\x23-\x5b\x5d-\x7e]/;

function text(value: string): string {
  return value.length <= PLAIN_MAX_CHARS && !NOT_PLAIN.test(value) ? `"${value}"` : JSON.stringify(value);
}

function canonicalArray(values: readonly unknown[]): string {
  if (values.length === 0) return '[]';
  let out = `[${canonicalJson(values[0])}`;
  for (let i = 1; i < values.length; i++) out += `,${canonicalJson(values[i])}`;
  return `${out}]`;
}

function canonicalObject(object: Record<string, unknown>): string {
  const keys = inOrder(Object.keys(object));
  let out = '';
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string;
    const value = object[key];
    if (value === undefined) continue;
    out += (out === '' ? firstName : nextName)(key) + canonicalJson(value);
  }
  return out === '' ? '{}' : `${out}}`;
}

// Sorts by UTF-16 code units (RFC 8785 3.2.3). Insertion sort: for objects with few members, Array.prototype.sort would
// take more time than the rest of the serialization.
const FEW_KEYS = 24;

function inOrder(keys: string[]): string[] {
  if (keys.length > FEW_KEYS) return keys.sort();
  for (let i = 1; i < keys.length; i++) {
    const key = keys[i] as string;
    let j = i - 1;
    for (; j >= 0 && (keys[j] as string) > key; j--) keys[j + 1] = keys[j] as string;
    keys[j + 1] = key;
  }
  return keys;
}

const NAMES_MAX = 1_024;
const NAME_MAX_CHARS = 64;

// Each name is cached with the sign before it: one concatenation less for each member.
const firstName = namesAfter('{');
const nextName = namesAfter(',');

/**
 * Returns a function that writes the name of a member after a sign. It caches the first short names. The cache is
 * bounded, because models and tools choose names freely.
 */
function namesAfter(sign: string): (key: string) => string {
  const names = new Map<string, string>();
  return (key) => {
    const known = names.get(key);
    if (known !== undefined) return known;
    const written = `${sign}${JSON.stringify(key)}:`;
    if (names.size < NAMES_MAX && key.length <= NAME_MAX_CHARS) names.set(key, written);
    return written;
  };
}
