/**
 * JSON Canonicalization Scheme, RFC 8785 (https://www.rfc-editor.org/rfc/rfc8785): the same value always gives the
 * same bytes, which is what the hash chain and byte-for-byte replay stand on.
 */

/**
 * The canonical text of a JSON value. Members whose value is `undefined` are left out, as JSON.stringify does.
 * Lone surrogates are written as escapes instead of being refused (RFC 8785 3.2.2.2 would refuse them): a model may
 * stream half a pair before it dies, and what it said must still be recordable.
 * @throws TypeError for what JSON cannot hold: NaN, infinities, functions, symbols, bigint, undefined in an array.
 */
export function canonicalJson(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return text(value);
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError(`canonical JSON cannot hold ${value}`);
      // What ECMAScript prints is what RFC 8785 3.2.2.3 asks for.
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

// Most strings are short and plain. To ask that first is quicker than to have JSON.stringify find it out.
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
  let out = '{';
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string;
    const value = object[key];
    if (value === undefined) continue;
    out += (out.length === 1 ? '' : ',') + member(key) + canonicalJson(value);
  }
  return `${out}}`;
}

// Sorts by UTF-16 code units, as RFC 8785 3.2.3 asks. Every record is written this way, and for the few members that
// its objects have, Array.prototype.sort costs more than the rest of the writing.
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

// `"key":` of the names that come again and again. Names made up by models and tools must not make it grow for ever.
const members = new Map<string, string>();
const MEMBERS_MAX = 1_024;
const MEMBER_MAX_CHARS = 64;

function member(key: string): string {
  const known = members.get(key);
  if (known !== undefined) return known;
  const written = `${JSON.stringify(key)}:`;
  if (members.size < MEMBERS_MAX && key.length <= MEMBER_MAX_CHARS) members.set(key, written);
  return written;
}
