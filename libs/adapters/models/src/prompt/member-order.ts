/**
 * The order of object members in requests to providers. A journal holds canonical JSON. So a host that loaded a session
 * has another order of members than the host that received them. Requests must not differ between the two: providers
 * cache prompts by their bytes, and each crash would cost the whole prompt.
 */
import type { Json, JsonObject } from '@coxswain/protocol';

// Each request of a session repeats its tools and earlier answers.
const ordered = new WeakMap<object, JsonObject>();

/** A copy with the members of every object sorted by name. */
export function inNameOrder(object: JsonObject): JsonObject {
  return once(object, () => sorted(object) as JsonObject);
}

/**
 * A copy of a JSON Schema with its members sorted by name. In `properties`, the members that `required` lists come
 * first, in the order of that list. Models write arguments in the order of the schema, and lists keep their order in a
 * journal.
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
