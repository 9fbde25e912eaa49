/**
 * Upcasts: `decodeRecord` (record.ts) converts records of earlier versions to the newest version. A change of the
 * schema that existing records do not fit raises `RECORD_VERSION`, and adds the upcast from the version before. A new
 * optional member does neither.
 * Upcasts are never changed or removed: users keep journals of every release.
 */

/** A record as JSON, with its large fields in place. */
export type RawRecord = { [member: string]: unknown };

/** Converts a record of one version to the next version. It may modify its argument. */
export type Upcast = (record: RawRecord) => RawRecord;

/** The upcast from each released version except the newest, by the version that it reads. */
export const UPCASTS: ReadonlyMap<number, Upcast> = new Map();

/** Whether this release reads a version: it is the newest, or an upcast exists from it and from each version after it. */
export function canUpcast(version: number, newest: number, upcasts: ReadonlyMap<number, Upcast>): boolean {
  let known = version;
  while (known < newest && upcasts.has(known)) known++;
  return known === newest;
}

/** Converts a record to the newest version. The caller has checked {@link canUpcast}. */
export function upcastToNewest(record: RawRecord, newest: number, upcasts: ReadonlyMap<number, Upcast>): RawRecord {
  let current = record;
  for (let version = record.v as number; version < newest; version++) {
    const step = upcasts.get(version) as Upcast;
    current = { ...step(current), v: version + 1 };
  }
  return current;
}
