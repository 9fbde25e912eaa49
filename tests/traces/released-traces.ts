/** What later releases make of the traces of a release. */

import { readRecord, replayJournal } from '@coxswain/session';
import { REPLAYED_VERSIONS } from '@coxswain/turn';
import { blobsBeside, readTrace } from './trace-files.ts';

/** Whether a trace is as it must be: it can be read, and replays, or is of a machine version that nobody says replays. */
export async function verdictOn(
  name: string,
  folder: string,
  machines: ReadonlySet<number> = REPLAYED_VERSIONS,
): Promise<string> {
  const records = readTrace(name, folder);
  const blobs = blobsBeside(folder);
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

/** What {@link verdictOn} must say. */
export const AS_IT_MUST_BE: readonly string[] = ['replays', 'refused by its machine version'];
