/**
 * Traces of releases. `released/<version>.sha256` lists the files of a release with their hashes, in the format of
 * `sha256sum`. While the golden traces still contain these files, nothing else is stored. `npm run trace:record` packs the
 * files of a release into `released/<version>.br` before it replaces one of them.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import type { Blobs } from '@coxswain/ports';
import { readRecord, replayJournal, sha256Hex } from '@coxswain/session';
import { REPLAYED_VERSIONS } from '@coxswain/turn';
import { goldenFiles, recordsIn, TRACES } from './trace-files.ts';

/** The folder of the lists and packed files of all releases. */
export const RELEASED = join(TRACES, 'released');

/** Bytes by path. */
export type TraceFiles = ReadonlyMap<string, Uint8Array>;

const LIST = '.sha256';

/** The versions whose traces are frozen, sorted. */
export function frozenVersions(folder = RELEASED): string[] {
  if (!existsSync(folder)) return [];
  const lists = readdirSync(folder).filter((file) => file.endsWith(LIST));
  return lists.map((file) => file.slice(0, -LIST.length)).sort();
}

/** The versions that the changelog names as released; one that is marked "not yet released" is not among them. */
export function releasedVersions(changelog: string): string[] {
  const headings = changelog.matchAll(/^## \[?(\d+\.\d+\.\d+[^\],\s]*)(?!.*not yet released)/gm);
  return [...headings].map(([, version]) => version as string).sort();
}

/**
 * Freezes trace files as those of a version.
 * @param released the versions that are released: their traces never change.
 * @throws Error if the version is released and has other traces.
 */
export function freezeTraces(
  version: string,
  released: readonly string[],
  files: TraceFiles = goldenFiles(),
  folder = RELEASED,
): void {
  const list = join(folder, `${version}${LIST}`);
  const isFrozen = released.includes(version) && existsSync(list);
  if (isFrozen && readFileSync(list, 'utf8') !== listOf(files))
    throw new Error(`${version} is released and has other traces: they never change`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(list, listOf(files));
}

/**
 * Adapts the folder to new golden traces. The files of a released version are packed if the new ones no longer contain
 * them. The list of a version that is not released yet is written anew.
 * @param before the golden traces that are replaced.
 * @param after the new ones.
 */
export function keepFrozen(
  released: readonly string[],
  before: TraceFiles,
  after: TraceFiles = goldenFiles(),
  folder = RELEASED,
): void {
  for (const version of frozenVersions(folder)) {
    if (!released.includes(version)) freezeTraces(version, released, after, folder);
    else if (!existsSync(packOf(version, folder)) && found(version, after, folder) === null)
      writeFileSync(packOf(version, folder), packed(frozenFiles(version, before, folder)));
  }
}

/**
 * The files of a version, byte for byte as they were frozen.
 * @throws Error naming the version, if its list names a file that neither the golden traces nor its packed files contain.
 */
export function frozenFiles(version: string, golden: TraceFiles = goldenFiles(), folder = RELEASED): TraceFiles {
  const pack = packOf(version, folder);
  const files = found(version, existsSync(pack) ? unpacked(readFileSync(pack)) : golden, folder);
  if (files) return files;
  throw new Error(`a trace of ${version} is missing: restore the golden traces and run npm run trace:record`);
}

const packOf = (version: string, folder: string) => join(folder, `${version}.br`);

/** The listed files among others; null if one is missing or has other bytes. */
function found(version: string, files: TraceFiles, folder: string): TraceFiles | null {
  const lines = readFileSync(join(folder, `${version}${LIST}`), 'utf8')
    .split('\n')
    .filter(Boolean);
  const listed = new Map<string, Uint8Array>();
  for (const line of lines) {
    const [sha256 = '', path = ''] = line.split('  ');
    const bytes = files.get(path);
    if (!bytes || sha256Hex(bytes) !== sha256) return null;
    listed.set(path, bytes);
  }
  return listed;
}

function listOf(files: TraceFiles): string {
  return [...files].map(([path, bytes]) => `${sha256Hex(bytes)}  ${path}\n`).join('');
}

function packed(files: TraceFiles): Uint8Array {
  const texts = [...files].map(([path, bytes]) => [path, Buffer.from(bytes).toString('utf8')]);
  const json = JSON.stringify(Object.fromEntries(texts));
  // The traces repeat each other: a window of all of them takes a third of the bytes.
  return brotliCompressSync(json, { params: { [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS } });
}

function unpacked(bytes: Uint8Array): TraceFiles {
  const texts = JSON.parse(brotliDecompressSync(bytes).toString('utf8')) as Record<string, string>;
  return new Map(Object.entries(texts).map(([path, text]) => [path, Buffer.from(text, 'utf8')]));
}

/**
 * Replays one trace of a release.
 * @param machines the machine versions that the reading release replays.
 * @returns `replays`, `refused by its machine version`, or what is wrong with it.
 */
export async function verdictOn(
  files: TraceFiles,
  name: string,
  machines: ReadonlySet<number> = REPLAYED_VERSIONS,
): Promise<string> {
  const records = recordsIn(files.get(`${name}.jsonl`) as Uint8Array);
  const blobs: Pick<Blobs, 'get'> = { get: async (sha256) => files.get(`blobs/${sha256}`) ?? null };
  const versions = new Set<number>();
  for (const bytes of records) {
    for (const event of (await readRecord(bytes, blobs)).events)
      if (event.type === 'agent_start') versions.add(event.machine_version);
  }
  const isReplayed = [...versions].every((version) => machines.has(version));
  try {
    const replayed = await replayJournal(records, blobs, { machines });
    return replayed.records === records.length ? 'replays' : `${replayed.records} of ${records.length} records replay`;
  } catch (error) {
    const { code, message } = error as Error & { readonly code?: string };
    const isRefused = code === 'machine_version_unknown' && !isReplayed;
    return isRefused ? 'refused by its machine version' : `${code}: ${message}`;
  }
}

/** The verdicts of {@link verdictOn} that a release must get. */
export const SOUND_VERDICTS: readonly string[] = ['replays', 'refused by its machine version'];
