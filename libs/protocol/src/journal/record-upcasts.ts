/**
 * Records of earlier shapes, read on into today's. Whoever changes the shape of a record once it was released raises
 * `RECORD_VERSION` and adds the step from the version before. A step is never changed again, and never taken away:
 * journals of every release lie on users' disks.
 */

/** A record as JSON, its large fields in place. */
export type RawRecord = { [member: string]: unknown };

/** From a record of one version to the same record as the next version writes it. It may change what it is given. */
export type Upcast = (record: RawRecord) => RawRecord;

/** The step from each released version but the newest, by the version that it reads. */
export const UPCASTS: ReadonlyMap<number, Upcast> = new Map();

/** Whether records of a version can be read on to the newest. */
export function isReadOn(version: number, newest: number, upcasts: ReadonlyMap<number, Upcast>): boolean {
  let known = version;
  while (known < newest && upcasts.has(known)) known++;
  return known === newest;
}

/** A record of a version that {@link isReadOn}, as the newest. */
export function readOn(record: RawRecord, newest: number, upcasts: ReadonlyMap<number, Upcast>): RawRecord {
  let current = record;
  for (let version = record.v as number; version < newest; version++) {
    const step = upcasts.get(version) as Upcast;
    current = { ...step(current), v: version + 1 };
  }
  return current;
}
