/**
 * Values that JSON text can contain and a record cannot: `1e999` is read as Infinity and would be written as null;
 * `"\ud800"` is read as a lone surrogate, which UTF-8 cannot encode.
 */

import type { CommandProblem } from '../commands/commands.ts';
import { cutText } from './unicode-text.ts';

/** The longest path of a field in a message. */
const FIELD_MAX_CHARS = 128;

/**
 * The problem of a body with an infinite number or a lone surrogate, with the path of the field; null without them.
 */
export function unwritableProblem(body: unknown): CommandProblem | null {
  const fault = unwritableMember(body);
  if (fault === null) return null;
  const field = cutText(fault.path.join('.').toWellFormed(), FIELD_MAX_CHARS) || 'body';
  return fault.kind === 'number'
    ? { code: 'invalid_field', message: `${field}: must be a number between -1.8e308 and 1.8e308`, field }
    : {
        code: 'invalid_unicode',
        message: `${field}: ill-formed Unicode: a lone surrogate, half of a UTF-16 pair (U+D800 to U+DFFF)`,
        field,
      };
}

/** A member that cannot be written: its path, and whether its number or its text (or key) is the cause. */
export interface UnwritableMember {
  readonly path: readonly string[];
  readonly kind: 'number' | 'text';
}

interface Place {
  readonly value: object;
  readonly key: string;
  readonly above: Place | null;
}

/**
 * Finds a number that is not finite, or a text or key with a lone surrogate; null if there is none. Objects with
 * `toJSON` are skipped.
 * @param root without cycles, nested to any depth.
 */
export function unwritableMember(root: unknown): UnwritableMember | null {
  if (typeof root !== 'object' || root === null) {
    const kind = faultOf(root);
    return kind === null ? null : { path: [], kind };
  }
  // Not recursive: deeply nested input must not overflow the stack.
  const open: Place[] = [{ value: root, key: '', above: null }];
  for (let place = open.pop(); place; place = open.pop()) {
    if (typeof (place.value as { readonly toJSON?: unknown }).toJSON === 'function') continue;
    for (const key of Object.keys(place.value)) {
      const member = (place.value as Record<string, unknown>)[key];
      const kind = faultOf(member) ?? faultOf(key);
      if (kind !== null) return { path: pathTo(place, key), kind };
      if (typeof member === 'object' && member !== null) open.push({ value: member, key, above: place });
    }
  }
  return null;
}

function faultOf(value: unknown): UnwritableMember['kind'] | null {
  if (typeof value === 'number') return Number.isFinite(value) ? null : 'number';
  return typeof value === 'string' && !value.isWellFormed() ? 'text' : null;
}

function pathTo(place: Place, key: string): readonly string[] {
  const path = [key];
  for (let at = place; at.above; at = at.above) path.push(at.key);
  return path.reverse();
}
