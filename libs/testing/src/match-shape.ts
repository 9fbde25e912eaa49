/** Partial shapes: the expected members of a value, and the first difference. */
import { cutGraphemes } from '@coxswain/protocol';

/** The first difference between a shape and a value. */
export interface ShapeDifference {
  /** The path in code: `result.content[0].text`; empty for the value itself. */
  readonly path: string;
  readonly why: string;
}

/**
 * Compares a value with a shape: null if they match, otherwise the first difference. Objects are compared by the
 * members of the shape only. Lists must have the same length. A regular expression searches in a text; a function tests
 * the value.
 */
export function shapeDifference(shape: unknown, value: unknown, path = ''): ShapeDifference | null {
  if (shape instanceof RegExp) {
    if (typeof value !== 'string')
      return { path, why: `${shown(value)} is not a text that can be searched for ${shape}` };
    // A global expression would continue after its previous match.
    return new RegExp(shape.source, shape.flags.replace(/[gy]/g, '')).test(value)
      ? null
      : { path, why: `${shown(value)} does not match ${shape}` };
  }
  if (typeof shape === 'function') {
    const holds: unknown = shape(value);
    return holds === true
      ? null
      : { path, why: `${shown(value)} is not what ${shape.name || 'the function'} looks for` };
  }
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) return { path, why: `${shown(value)} is not a list` };
    if (value.length !== shape.length)
      return { path, why: `it has ${value.length} members, expected ${shape.length}: ${shown(value)}` };
    return first(shape.map((member, index) => () => shapeDifference(member, value[index], `${path}[${index}]`)));
  }
  if (typeof shape === 'object' && shape !== null) {
    if (typeof value !== 'object' || value === null) return { path, why: `${shown(value)} is not an object` };
    const members = value as Readonly<Record<string, unknown>>;
    return first(
      Object.entries(shape).map(
        ([key, member]) =>
          () =>
            shapeDifference(member, members[key], path === '' ? key : `${path}.${key}`),
      ),
    );
  }
  return Object.is(shape, value) ? null : { path, why: `${shown(value)} is not ${shown(shape)}` };
}

/** A value on one line, truncated if it is long. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  const text = JSON.stringify(value, (_key, member: unknown) =>
    member instanceof RegExp
      ? String(member)
      : typeof member === 'function'
        ? `[${member.name || 'function'}]`
        : member,
  );
  return text === undefined ? String(value) : text.length > SHOWN_MAX ? `${cutGraphemes(text, SHOWN_MAX)}…` : text;
}

const SHOWN_MAX = 300;

function first(looks: readonly (() => ShapeDifference | null)[]): ShapeDifference | null {
  for (const look of looks) {
    const found = look();
    if (found !== null) return found;
  }
  return null;
}
