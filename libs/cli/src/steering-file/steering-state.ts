/** The stored state of a steering file, in a file next to it. */
import { readFile } from 'node:fs/promises';
import { replaceFile } from '@coxswain/ports/discovery';
import { newTrack, type Track } from './tracked-file.ts';

/** The tracks of the file itself, and of the file that was moved aside when it was last cleared. */
export interface SteeringState {
  readonly current: Track;
  readonly sent: Track | null;
}

/**
 * Reads the state. A missing or unreadable state is replaced by a new one: lines may then be sent twice, but none is
 * lost.
 */
export async function readState(path: string): Promise<SteeringState> {
  try {
    const { v, current, sent } = JSON.parse(await readFile(path, 'utf8'));
    if (v === STATE_VERSION && isTrack(current) && (sent === null || isTrack(sent))) return { current, sent };
  } catch {
    // The file is missing or is not JSON. It is handled like one of another version.
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
