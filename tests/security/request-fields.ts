/** All fields that a command can have, at any depth, derived from the schemas of the commands. */
import { COMMAND_BODIES, type Verb } from '@coxswain/protocol';
import { z } from 'zod';

/** The part of JSON Schema that the walk reads. */
interface Schema {
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly prefixItems?: readonly Schema[];
  readonly additionalProperties?: Schema | boolean;
  readonly $ref?: string;
}

/** Members with a schema of their own, by the places where they stand in `start`. */
const SHARED: readonly (readonly [place: RegExp, name: string])[] = [
  [/^(persona|personas\.\*|fork\.changes\.persona)(?=\.)/, '<persona>'],
  [/^(<persona>\.)?(mcp_servers|permissions|limits)(?=\.)/, '<$2>'],
];

/**
 * The leaves of a command's body, such as `fork.n`. `*` is an item of a list, `NAME` a key that the sender chooses. Personas, MCP
 * servers, permissions and limits have the same name wherever they stand: `<persona>.model.name`.
 * The function throws if a schema has a reference, which the walk does not follow.
 */
export function leavesOf(verb: Verb): string[] {
  const found = new Set<string>();
  for (const io of ['input', 'output'] as const)
    walk(z.toJSONSchema(COMMAND_BODIES[verb], { io, unrepresentable: 'any' }) as Schema, [], found);
  return [...new Set([...found].map(sharedName))].sort();
}

function sharedName(path: string): string {
  return SHARED.reduce((name, [place, shared]) => name.replace(place, shared), path);
}

function walk(schema: Schema, at: readonly string[], found: Set<string>): void {
  if (schema.$ref !== undefined) throw new Error(`${at.join('.')}: a reference, which this walk does not follow`);
  const choices = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])];
  for (const choice of choices) walk(choice, at, found);
  const members = Object.entries(schema.properties ?? {}).map(([name, member]) => [name, member] as const);
  const items = [schema.items, ...(schema.prefixItems ?? [])].filter((item) => item !== undefined);
  const values = typeof schema.additionalProperties === 'object' ? [schema.additionalProperties] : [];
  for (const [name, member] of members) walk(member, [...at, name], found);
  for (const item of items) walk(item, [...at, '*'], found);
  for (const value of values) walk(value, [...at, 'NAME'], found);
  if (choices.length + members.length + items.length + values.length === 0) found.add(at.join('.'));
}
