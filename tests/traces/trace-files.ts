/** Traces as files: one record a line, exactly as it was stored; large fields beside them, by their hash. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Blobs } from '@coxswain/ports';
import type { Trace } from './record-trace.ts';

/** Where traces lie. */
export const TRACES = import.meta.dirname;
/** Where the traces of each release lie, in a folder of its version: as they were when it was released, for ever. */
export const RELEASED = join(TRACES, 'released');
/** Where traces lie that must not replay. */
export const BROKEN = join(TRACES, 'broken');
const BLOBS = join(TRACES, 'blobs');

const NEWLINE = 0x0a;

/** The names of the traces in a folder, sorted. */
export function traceNames(folder = TRACES): string[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.jsonl'))
    .map((file) => file.slice(0, -'.jsonl'.length))
    .sort();
}

/** The records of a trace, byte for byte. */
export function readTrace(name: string, folder = TRACES): Uint8Array[] {
  const bytes = readFileSync(join(folder, `${name}.jsonl`));
  const records: Uint8Array[] = [];
  for (let from = 0; from < bytes.length; ) {
    const end = bytes.indexOf(NEWLINE, from);
    const to = end < 0 ? bytes.length : end;
    records.push(bytes.subarray(from, to));
    from = to + 1;
  }
  return records;
}

/** The bytes of a file with these records. Canonical JSON has no line break. */
export function traceBytes(records: readonly Uint8Array[]): Buffer {
  return Buffer.concat(records.flatMap((record) => [record, Buffer.from('\n')]));
}

/** The blobs that lie beside the traces of a folder. */
export function blobsBeside(folder: string): Pick<Blobs, 'get'> {
  return {
    async get(sha256) {
      const file = join(folder, 'blobs', sha256);
      return existsSync(file) ? readFileSync(file) : null;
    },
  };
}

/** The blobs that lie beside the newest traces. */
export const traceBlobs = blobsBeside(TRACES);

/** The releases that have a folder of traces. */
export function releasesWithTraces(): string[] {
  return existsSync(RELEASED) ? readdirSync(RELEASED).sort() : [];
}

/** Keeps the traces as they are now as those of a release. @throws where it has some already: they never change. */
export async function releaseTraces(version: string, releases = RELEASED): Promise<void> {
  const folder = join(releases, version);
  if (existsSync(folder)) throw new Error(`${version} has its traces already, and they never change`);
  await mkdir(folder, { recursive: true });
  for (const name of traceNames()) await cp(join(TRACES, `${name}.jsonl`), join(folder, `${name}.jsonl`));
  await cp(BLOBS, join(folder, 'blobs'), { recursive: true });
}

/** Puts new traces in the place of all that there were. */
export async function writeTraces(traces: ReadonlyMap<string, Trace>): Promise<void> {
  for (const name of traceNames()) await rm(join(TRACES, `${name}.jsonl`));
  await emptied(BLOBS);
  for (const [name, { records, blobs }] of traces) {
    await writeFile(join(TRACES, `${name}.jsonl`), traceBytes(records));
    for (const [sha256, bytes] of blobs) await writeFile(join(BLOBS, sha256), bytes);
  }
}

/** Puts new broken traces in the place of all that there were. */
export async function writeBroken(broken: ReadonlyMap<string, readonly Uint8Array[]>): Promise<void> {
  await emptied(BROKEN);
  for (const [name, records] of broken) await writeFile(join(BROKEN, `${name}.jsonl`), traceBytes(records));
}

async function emptied(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder);
}
