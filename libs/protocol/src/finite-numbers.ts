/** Numbers that JSON can write and nobody can hold: `1e999` is read as infinite, and would be written as null. */

import type { CommandProblem } from './commands.ts';

/** A name is told as far as it is readable. */
const FIELD_MAX_CHARS = 128;

/** The problem of a body with a number that is not finite; null where it has none. See {@link notFinite}. */
export function infiniteNumber(body: unknown): CommandProblem | null {
  const path = notFinite(body);
  if (path === null) return null;
  const field = path.join('.').slice(0, FIELD_MAX_CHARS) || 'body';
  return { code: 'invalid_field', message: `${field}: must be a number between -1.8e308 and 1.8e308`, field };
}

interface Place {
  readonly value: object;
  readonly key: string;
  readonly above: Place | null;
}

/**
 * Where a value has a number that is not finite; null where it has none. What writes itself (`toJSON`) is not looked into.
 * @param root without circles.
 */
export function notFinite(root: unknown): readonly string[] | null {
  if (typeof root === 'number') return Number.isFinite(root) ? null : [];
  if (typeof root !== 'object' || root === null) return null;
  // Not recursive: what a stranger has nested must not use the stack up.
  const open: Place[] = [{ value: root, key: '', above: null }];
  for (let place = open.pop(); place; place = open.pop()) {
    if (typeof (place.value as { readonly toJSON?: unknown }).toJSON === 'function') continue;
    for (const key of Object.keys(place.value)) {
      const member = (place.value as Record<string, unknown>)[key];
      if (typeof member === 'number') {
        if (!Number.isFinite(member)) return pathTo(place, key);
      } else if (typeof member === 'object' && member !== null) open.push({ value: member, key, above: place });
    }
  }
  return null;
}

function pathTo(place: Place, key: string): readonly string[] {
  const path = [key];
  for (let at = place; at.above; at = at.above) path.push(at.key);
  return path.reverse();
}
