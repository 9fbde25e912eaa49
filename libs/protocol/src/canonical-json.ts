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
      return JSON.stringify(value);
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError(`canonical JSON cannot hold ${value}`);
      return JSON.stringify(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      return Array.isArray(value) ? canonicalArray(value) : canonicalObject(value as Record<string, unknown>);
    default:
      throw new TypeError(`canonical JSON cannot hold a ${typeof value}`);
  }
}

function canonicalArray(values: readonly unknown[]): string {
  let out = '[';
  for (let i = 0; i < values.length; i++) out += (i === 0 ? '' : ',') + canonicalJson(values[i]);
  return `${out}]`;
}

function canonicalObject(object: Record<string, unknown>): string {
  let out = '{';
  // The default sort compares UTF-16 code units, which is the order that RFC 8785 3.2.3 asks for.
  for (const key of Object.keys(object).sort()) {
    const value = object[key];
    if (value === undefined) continue;
    out += `${out.length === 1 ? '' : ','}${JSON.stringify(key)}:${canonicalJson(value)}`;
  }
  return `${out}}`;
}
