/** Traces as files: one record a line, exactly as it was stored; large fields beside them, by their hash. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Blobs } from '@coxswain/ports';
import { blobRefsOf } from '@coxswain/protocol';
import type { Trace } from './record-trace.ts';

/** Where traces lie. */
export const TRACES = import.meta.dirname;
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
  return recordsIn(readFileSync(join(folder, `${name}.jsonl`)));
}

/** Splits the bytes of a trace file into records. */
export function recordsIn(bytes: Uint8Array): Uint8Array[] {
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

/** The blobs of the golden traces. */
export const traceBlobs: Pick<Blobs, 'get'> = {
  async get(sha256) {
    const file = join(BLOBS, sha256);
    return existsSync(file) ? readFileSync(file) : null;
  },
};

/** The golden traces by name, with their blobs. */
export function storedTraces(): Map<string, Trace> {
  return new Map(
    traceNames().map((name) => {
      const records = readTrace(name);
      const hashes = records.flatMap((bytes) => blobRefsOf(bytes)).map(({ sha256 }) => sha256);
      return [name, { records, blobs: new Map(hashes.map((sha256) => [sha256, readFileSync(join(BLOBS, sha256))])) }];
    }),
  );
}

/** The golden traces and their blobs: bytes by path, as `daemon.jsonl` or `blobs/<sha256>`. */
export function goldenFiles(): Map<string, Uint8Array> {
  const paths = [
    ...traceNames().map((name) => `${name}.jsonl`),
    ...readdirSync(BLOBS)
      .sort()
      .map((sha256) => `blobs/${sha256}`),
  ];
  return new Map(paths.map((path) => [path, readFileSync(join(TRACES, path))]));
}

/** Replaces all traces and blobs. */
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
