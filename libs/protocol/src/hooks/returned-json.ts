/**
 * Detects parts of return values that JSON would drop or replace silently.
 */
import { cutText } from '../wire/unicode-text.ts';

/** A longer key is cut in the message: a message of an answer is bounded, and must name the kind. */
const KEY_MAX_CHARS = 100;

/**
 * Names a part of a return value that JSON cannot represent; null without one. `JSON.stringify` drops functions, and
 * writes NaN as `null` and a Map or a promise as `{}`. Each would be a different answer than the intended one.
 * `undefined` is valid: it means an absent member.
 */
export function returnProblem(raw: unknown): string | null {
  const open: [value: unknown, name: string][] = [[raw, 'it']];
  const seen = new Set<unknown>();
  for (let next = open.pop(); next; next = open.pop()) {
    const [value, name] = next;
    const stray = strayKind(value);
    if (stray !== null) return `${name} is ${stray}`;
    if (typeof value !== 'object' || value === null || seen.has(value)) continue;
    seen.add(value);
    // An object with `toJSON`, such as a date, defines its own form.
    if (typeof (value as { toJSON?: unknown }).toJSON === 'function') continue;
    for (const [key, member] of Object.entries(value)) open.push([member, JSON.stringify(cutText(key, KEY_MAX_CHARS))]);
  }
  return null;
}

function strayKind(value: unknown): string | null {
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'symbol') return 'a symbol';
  if (typeof value === 'bigint') return 'a BigInt';
  if (typeof value === 'number') return Number.isFinite(value) ? null : String(value);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const kind = Object.prototype.toString.call(value).slice('[object '.length, -1);
  if (kind === 'Object' || typeof (value as { toJSON?: unknown }).toJSON === 'function') return null;
  return kind === 'Promise' ? 'a promise: await it' : `of the kind ${kind}`;
}
