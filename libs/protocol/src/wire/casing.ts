/**
 * The one mapper between two spellings of names: `snake_case` in everything that leaves a process (NATS, HTTP, files,
 * journals), `camelCase` in TypeScript. It renames the members that a schema declares, and others if the schema has a
 * catchall that accepts them. It never renames data: arguments and results of tools, metadata, JSON Schemas, and the
 * keys of maps have names that belong to users.
 */
import type * as z from 'zod';
import type { Json } from './json.ts';
import { nearestWord } from './nearest-word.ts';

/** The TypeScript spelling of a wire name: `max_turns` becomes `maxTurns`. */
export type CamelName<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelName<Tail>>}`
  : Name;

/** A wire type with TypeScript names. Free JSON and maps keep their keys. */
export type CamelCased<T> = [Json] extends [T]
  ? T
  : T extends readonly unknown[]
    ? { [Index in keyof T]: CamelCased<T[Index]> }
    : T extends object
      ? string extends keyof T
        ? { [Key in keyof T]: CamelCased<T[Key]> }
        : { [Key in keyof T as Key extends string ? CamelName<Key> : Key]: CamelCased<T[Key]> }
      : T;

/** A value with wire names; or the path of the first member with a wrong name, and what is wrong. */
export type WireForm<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly path: readonly (string | number)[]; readonly words: string };

/** `max_turns` → `maxTurns`. */
export function camelName(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** `maxTurns` → `max_turns`. */
export function wireName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * Renames the members of a value from the wire to their TypeScript names.
 * @param schema declares the value. Undeclared members keep their values. They keep their names too, unless the schema
 *   has a catchall that accepts them.
 */
export function fromWire<S extends z.ZodType>(schema: S, value: z.output<S>): CamelCased<z.output<S>> {
  return new Mapping('camel').of(formOf(schema, 'output'), value, []) as CamelCased<z.output<S>>;
}

/**
 * Renames the members of a value from a program to their wire names. Checks names only; the schema checks the rest.
 * @returns the renamed value; or `path` and `words` of the first wrong member. A member is wrong if a strict schema
 *   does not declare it, or if it has its wire name. A schema with a catchall accepts both.
 */
export function toWire<S extends z.ZodType>(schema: S, value: CamelCased<z.input<S>>): WireForm<z.input<S>> {
  try {
    return { ok: true, value: new Mapping('wire').of(formOf(schema, 'input'), value, []) as z.input<S> };
  } catch (error) {
    if (!(error instanceof UnknownName)) throw error;
    return { ok: false, path: error.path, words: error.message };
  }
}

/**
 * Renames the members in a path from the wire to their TypeScript names: `limits.max_turns` becomes `limits.maxTurns`.
 * @param schema declares the value in which the path leads to a member. Undeclared names stay.
 */
export function pathFromWire(schema: z.ZodType, path: string): string {
  let forms: readonly Form[] = [formOf(schema, 'input')];
  return path.replace(/[^.[\]]+/g, (name) => {
    const fields = forms.flatMap(({ objects }) => objects.flatMap(({ byWire }) => byWire.get(name) ?? []));
    const maps = forms.flatMap(({ list, map }) => [list ?? [], map ?? []].flat());
    forms = [...fields.map(({ form }) => form()), ...maps.map((form) => form())];
    return fields[0]?.camel ?? name;
  });
}

// ---- names in a schema ----

interface Field {
  readonly wire: string;
  readonly camel: string;
  readonly form: () => Form;
  /** The values of a literal; null for any other schema. They distinguish the members of a union. */
  readonly values: readonly unknown[] | null;
}

interface ObjectForm {
  readonly byWire: ReadonlyMap<string, Field>;
  readonly byCamel: ReadonlyMap<string, Field>;
  /** Treatment of undeclared members: an error on the way to the wire, renamed, or kept. */
  readonly others: 'refused' | 'renamed' | 'kept';
}

/** Schemas of free JSON with names of the protocol in it, and for each the schema that declares these names. */
const named = new WeakMap<object, () => z.ZodType>();

/**
 * Declares the names in a value whose own schema accepts free JSON. The mapper renames them; parsers ignore them.
 * @param schema an instance that no other document shares: the members would be renamed there too.
 */
export function withNames<S extends z.ZodType>(schema: S, names: () => z.ZodType): S {
  named.set(schema, names);
  return schema;
}

/** The possible forms of a value by its schema. A value without forms is data. */
interface Form {
  readonly objects: readonly ObjectForm[];
  readonly list: (() => Form) | null;
  readonly map: (() => Form) | null;
}

const DATA: Form = { objects: [], list: null, map: null };

type Side = 'input' | 'output';

/** The part of a zod schema that this file reads. */
interface SchemaNode {
  readonly def: {
    readonly type: string;
    readonly shape?: Readonly<Record<string, SchemaNode>>;
    readonly catchall?: SchemaNode;
    readonly innerType?: SchemaNode;
    readonly in?: SchemaNode;
    readonly out?: SchemaNode;
    readonly getter?: () => SchemaNode;
    readonly options?: readonly SchemaNode[];
    readonly left?: SchemaNode;
    readonly right?: SchemaNode;
    readonly element?: SchemaNode;
    readonly items?: readonly SchemaNode[];
    readonly valueType?: SchemaNode;
    readonly values?: readonly unknown[];
  };
}

const known: Readonly<Record<Side, WeakMap<object, Form>>> = { input: new WeakMap(), output: new WeakMap() };

function formOf(schema: unknown, side: Side): Form {
  const node = schema as SchemaNode;
  const before = known[side].get(node);
  if (before) return before;
  const names = named.get(node);
  const form = names ? formOf(names(), side) : readForm(node, side);
  known[side].set(node, form);
  return form;
}

function readForm(node: SchemaNode, side: Side): Form {
  const { def } = node;
  switch (def.type) {
    case 'object':
      return { ...DATA, objects: [objectForm(def, side)] };
    case 'array':
      return { ...DATA, list: () => formOf(def.element, side) };
    case 'tuple':
      return { ...DATA, list: () => together(def.items ?? [], side) };
    case 'record':
      return { ...DATA, map: () => formOf(def.valueType, side) };
    case 'union':
      return together(def.options ?? [], side);
    case 'intersection':
      return both(formOf(def.left, side), formOf(def.right, side));
    case 'lazy':
      return formOf(def.getter?.(), side);
    case 'pipe': {
      const asked = side === 'input' ? def.in : def.out;
      const other = side === 'input' ? def.out : def.in;
      return formOf(asked?.def.type === 'transform' ? other : asked, side);
    }
    default:
      return def.innerType ? formOf(def.innerType, side) : DATA;
  }
}

function objectForm({ shape = {}, catchall }: SchemaNode['def'], side: Side): ObjectForm {
  const fields = Object.entries(shape).map(
    ([wire, schema]): Field => ({
      wire,
      camel: camelName(wire),
      form: () => formOf(schema, side),
      values: schema.def.type === 'literal' ? (schema.def.values ?? null) : null,
    }),
  );
  return {
    byWire: new Map(fields.map((field) => [field.wire, field])),
    byCamel: new Map(fields.map((field) => [field.camel, field])),
    others: catchall?.def.type === 'never' ? 'refused' : catchall ? 'renamed' : 'kept',
  };
}

/** The union of several schemas. */
function together(options: readonly SchemaNode[], side: Side): Form {
  const forms = options.map((option) => formOf(option, side));
  const lists = forms.flatMap(({ list }) => list ?? []);
  const maps = forms.flatMap(({ map }) => map ?? []);
  return {
    objects: forms.flatMap(({ objects }) => objects),
    list: oneOf(lists),
    map: oneOf(maps),
  };
}

function oneOf(forms: readonly (() => Form)[]): (() => Form) | null {
  const [first, ...others] = forms;
  if (!first || others.length === 0) return first ?? null;
  return () => {
    const all = forms.map((form) => form());
    return {
      objects: all.flatMap(({ objects }) => objects),
      list: oneOf(all.flatMap(({ list }) => list ?? [])),
      map: oneOf(all.flatMap(({ map }) => map ?? [])),
    };
  };
}

/**
 * The intersection of two schemas: an object with the members of both, if each side has exactly one object form.
 * Otherwise only one side counts: the left one if it has objects, else the right one.
 */
function both(left: Form, right: Form): Form {
  const [one, ...more] = left.objects;
  const [other, ...others] = right.objects;
  if (!one || !other || more.length > 0 || others.length > 0) return left.objects.length > 0 ? left : right;
  const object: ObjectForm = {
    byWire: new Map([...one.byWire, ...other.byWire]),
    byCamel: new Map([...one.byCamel, ...other.byCamel]),
    others: one.others,
  };
  return { ...DATA, objects: [object] };
}

// ---- renaming ----

class UnknownName extends Error {
  readonly path: readonly (string | number)[];

  constructor(path: readonly (string | number)[], words: string) {
    super(words);
    this.path = path;
  }
}

class Mapping {
  readonly #to: 'camel' | 'wire';

  constructor(to: 'camel' | 'wire') {
    this.#to = to;
  }

  of(form: Form, value: unknown, path: readonly (string | number)[]): unknown {
    if (Array.isArray(value)) {
      const { list } = form;
      return list ? value.map((item, index) => this.of(list(), item, [...path, index])) : value;
    }
    if (!isPlainObject(value)) return value;
    const object = this.#objectFor(form, value);
    if (object) return this.#members(object, value, path);
    const { map } = form;
    return map ? mapped(value, (key, item) => [key, this.of(map(), item, [...path, key])]) : value;
  }

  /**
   * The first object form whose members and literals fit the value. Without one: null if the form has a map, which then
   * applies; otherwise the first form whose literals fit, or the first of all. The only form needs no comparison.
   */
  #objectFor({ objects, map }: Form, value: Readonly<Record<string, unknown>>): ObjectForm | null {
    if (objects.length === 0 || (objects.length === 1 && !map)) return objects[0] ?? null;
    const byLiterals = objects.filter((object) => this.#literalsFit(object, value));
    const fitting = byLiterals.find((object) => Object.keys(value).every((key) => this.#field(object, key)));
    return fitting ?? (map ? null : (byLiterals[0] ?? objects[0] ?? null));
  }

  #literalsFit({ byCamel }: ObjectForm, value: Readonly<Record<string, unknown>>): boolean {
    return [...byCamel.values()].every(({ values, camel, wire }) => {
      const member = value[this.#to === 'wire' ? camel : wire];
      return values === null || member === undefined || values.includes(member);
    });
  }

  #field(object: ObjectForm, key: string): Field | undefined {
    return (this.#to === 'wire' ? object.byCamel : object.byWire).get(key);
  }

  #members(object: ObjectForm, value: Readonly<Record<string, unknown>>, path: readonly (string | number)[]): unknown {
    return mapped(value, (key, member) => {
      const field = this.#field(object, key);
      const at = [...path, key];
      if (field) return [this.#to === 'wire' ? field.wire : field.camel, this.of(field.form(), member, at)];
      if (object.others === 'renamed') return [this.#to === 'wire' ? wireName(key) : camelName(key), member];
      const isRefused = object.others === 'refused' || object.byWire.has(key);
      if (isRefused && this.#to === 'wire' && member !== undefined)
        throw new UnknownName(at, unknownWords(object, key));
      return [key, member];
    });
  }
}

function unknownWords({ byWire, byCamel }: ObjectForm, key: string): string {
  const inWire = byWire.get(key);
  const meant = inWire?.camel ?? nearestWord(key, byCamel.keys());
  return meant === null ? 'is unknown' : `is unknown; did you mean ${meant}?`;
}

function mapped(
  value: Readonly<Record<string, unknown>>,
  map: (key: string, member: unknown) => readonly [string, unknown],
): Record<string, unknown> {
  // Not by assignment: `__proto__` is a valid member name.
  return Object.fromEntries(Object.entries(value).map(([key, member]) => map(key, member)));
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
