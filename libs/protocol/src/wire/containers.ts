/**
 * Lists and maps of values from an untrusted sender. An invalid member costs far more than a valid one: a union tries
 * every alternative, and zod builds an issue for each. So reading stops at a number of problems.
 */
import * as z from 'zod';
import * as core from 'zod/v4/core';

/**
 * The number of problems after which the members of a list or map are not read, and the maximum that is described of
 * one value. One body could have over a hundred thousand, and describing each takes up to a millisecond.
 */
export const PROBLEMS_MAX = 16;

const WholeList: core.$constructor<z.ZodArray> = z.ZodArray;
const WholeMap: core.$constructor<z.ZodRecord> = z.ZodRecord;

/** As `z.array`, until the problems suffice. */
const List = /* @__PURE__ */ core.$constructor<z.ZodArray>('CoxswainList', (list, def) => {
  WholeList.init(list, def);
  const readWhole = list._zod.parse;
  const most = Math.min(...core.util.sizeCaps(def.checks).map(([size]) => size));
  list._zod.parse = (payload, context) => {
    const given = payload.value as unknown;
    // zod itself refuses a list beyond its maximum before it reads a member.
    if (!Array.isArray(given) || given.length <= PROBLEMS_MAX || given.length > most)
      return readWhole(payload, context);
    const read: unknown[] = [];
    payload.value = read;
    for (const [index, member] of given.entries()) {
      const one = synchronous(def.element._zod.run({ value: member, issues: [] }, context));
      read.push(one.value);
      if (isFull(payload, core.util.prefixIssues(index, one.issues))) break;
    }
    return payload;
  };
});

interface MapDef extends core.$ZodRecordDef {
  readonly most: number;
}

/** As `z.record`, in parts, until the problems suffice. */
const BoundedMap = /* @__PURE__ */ core.$constructor<z.ZodRecord, MapDef>('CoxswainMap', (map, def) => {
  WholeMap.init(map, def);
  const readWhole = map._zod.parse;
  map._zod.parse = (payload, context) => {
    const given = payload.value as unknown;
    const keys = core.util.isPlainObject(given) ? Object.keys(given) : [];
    if (!core.util.isPlainObject(given) || keys.length <= PROBLEMS_MAX) return readWhole(payload, context);
    if (keys.length > def.most) {
      payload.issues.push({
        code: 'too_big',
        origin: 'record',
        maximum: def.most,
        inclusive: true,
        input: given,
        inst: map,
      });
      return payload;
    }
    const read = {};
    payload.value = read;
    for (let from = 0; from < keys.length; from += PROBLEMS_MAX) {
      const part = Object.fromEntries(keys.slice(from, from + PROBLEMS_MAX).map((key) => [key, given[key]]));
      const some = synchronous(readWhole({ value: part, issues: [] }, context));
      Object.assign(read, some.value);
      if (isFull(payload, some.issues)) break;
    }
    return payload;
  };
  const describe = map._zod.processJSONSchema;
  if (def.most < Number.POSITIVE_INFINITY)
    map._zod.processJSONSchema = (context, json, params) => {
      describe?.(context, json, params);
      json.maxProperties = def.most;
    };
});

function synchronous(result: core.ParsePayload | Promise<core.ParsePayload>): core.ParsePayload {
  if (result instanceof Promise) throw new core.$ZodAsyncError();
  return result;
}

/** Adds the problems of the members just read. @returns whether they suffice: then no rule may see the rest. */
function isFull({ issues }: core.ParsePayload, more: readonly core.$ZodRawIssue[]): boolean {
  for (const issue of more) issues.push(issue);
  if (issues.length < PROBLEMS_MAX) return false;
  issues.push({ ...(issues.pop() as core.$ZodRawIssue), continue: false });
  return true;
}

/**
 * A list as of `z.array`, which reads no member after {@link PROBLEMS_MAX} problems. With `.max(n)`, a longer list is
 * refused before a member is read. Members are never asynchronous.
 */
export function listOf<T extends z.ZodType>(member: T): z.ZodArray<T> {
  return new List({ type: 'array', element: member }) as unknown as z.ZodArray<T>;
}

/**
 * A map as of `z.record`, which reads few entries after {@link PROBLEMS_MAX} problems. Entries are never asynchronous.
 * @param most a larger map is refused before an entry is read. At least {@link PROBLEMS_MAX}.
 */
export function mapOf<V extends z.ZodType>(
  key: z.ZodString,
  value: V,
  most: number = Number.POSITIVE_INFINITY,
): z.ZodRecord<z.ZodString, V> {
  return new BoundedMap({ type: 'record', keyType: key, valueType: value, most }) as unknown as z.ZodRecord<
    z.ZodString,
    V
  >;
}
