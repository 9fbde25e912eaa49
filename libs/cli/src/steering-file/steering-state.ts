/** What is remembered of a steering file, beside it on the disk. */
import { readFile } from 'node:fs/promises';
import { replaceFile } from '../instance/replace-file.ts';
import { newTrack, type Track } from './tracked-file.ts';

/** The file itself, and the one that stood in its place before it was last cleared. */
export interface SteeringState {
  readonly current: Track;
  readonly sent: Track | null;
}

/** Reads the state; a new one where there is none, or none that can be read: then something may be sent twice, never lost. */
export async function readState(path: string): Promise<SteeringState> {
  try {
    const { v, current, sent } = JSON.parse(await readFile(path, 'utf8'));
    if (v === STATE_VERSION && isTrack(current) && (sent === null || isTrack(sent))) return { current, sent };
  } catch {
    // Not there, or no JSON: as with one of another version.
  }
  return { current: newTrack(null), sent: null };
}

const STATE_VERSION = 1;

function isTrack(value: unknown): value is Track {
  if (typeof value !== 'object' || value === null) return false;
  const { generation, ino, consumed, tail } = value as Readonly<Record<string, unknown>>;
  return (
    typeof generation === 'string' &&
    (ino === null || typeof ino === 'string') &&
    Number.isSafeInteger(consumed) &&
    (consumed as number) >= 0 &&
    typeof tail === 'string'
  );
}

/** Writes the state. @throws as {@link replaceFile}. */
export async function writeState(path: string, { current, sent }: SteeringState): Promise<void> {
  await replaceFile(path, JSON.stringify({ v: STATE_VERSION, current, sent }));
}
