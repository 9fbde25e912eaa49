/**
 * The order of members in what a provider is sent. A journal holds JSON in canonical form, so a host that has loaded a
 * session has members in another order than the host that first heard them. A request must not show which of the two
 * sends it: providers keep what they have read of a prompt by its bytes, and each crash would cost the whole prompt.
 */
import type { Json, JsonObject } from '@coxswain/protocol';

// Tools and old answers stand in every request of a session.
const ordered = new WeakMap<object, JsonObject>();

/** A copy with the members of every object in order of their names. */
export function inNameOrder(object: JsonObject): JsonObject {
  return once(object, () => sorted(object) as JsonObject);
}

/**
 * A JSON Schema with its members in order of their names, but for `properties`: those that `required` lists come first, as
 * it lists them. Models write arguments in the order in which they read of them, and lists keep theirs in a journal.
 */
export function inSchemaOrder(schema: JsonObject): JsonObject {
  return once(schema, () => sorted(schema, requiredFirst) as JsonObject);
}

function once(object: JsonObject, make: () => JsonObject): JsonObject {
  const known = ordered.get(object);
  if (known) return known;
  const made = make();
  ordered.set(object, made);
  return made;
}

type Reorder = (name: string, names: readonly string[], parent: JsonObject) => readonly string[];
const asNamed: Reorder = (_, names) => names;

function sorted(value: Json, reorder: Reorder = asNamed, name = '', parent: JsonObject = {}): Json {
  if (Array.isArray(value)) return value.map((member) => sorted(member, reorder));
  if (typeof value !== 'object' || value === null) return value;
  const names = reorder(name, Object.keys(value).sort(), parent);
  return Object.fromEntries(names.map((key) => [key, sorted(value[key] as Json, reorder, key, value)]));
}

function requiredFirst(name: string, names: readonly string[], { required }: JsonObject): readonly string[] {
  if (name !== 'properties' || !Array.isArray(required)) return names;
  return [...new Set([...required.map(String).filter((key) => names.includes(key)), ...names])];
}
