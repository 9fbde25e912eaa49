/** What is remembered of a steering file, beside it on the disk. */
import { randomBytes } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { newTrack, type Track } from './tracked-file.ts';

const StoredTrack = z.strictObject({
  generation: z.string().min(1).max(64),
  ino: z.string().nullable(),
  consumed: z.number().int().nonnegative(),
  tail: z.string(),
});
const Stored = z.strictObject({ v: z.literal(1), current: StoredTrack, sent: StoredTrack.nullable() });

/** The file itself, and the one that stood in its place before it was last cleared. */
export interface SteeringState {
  readonly current: Track;
  readonly sent: Track | null;
}

/** Reads the state; a new one where there is none, or none that can be read: then something may be sent twice, never lost. */
export async function readState(path: string): Promise<SteeringState> {
  try {
    const { current, sent } = Stored.parse(JSON.parse(await readFile(path, 'utf8')));
    return { current, sent };
  } catch {
    return { current: newTrack(null), sent: null };
  }
}

/** Writes the state in one step, so that nobody finds half of it. */
export async function writeState(path: string, { current, sent }: SteeringState): Promise<void> {
  const draft = `${path}.${process.pid}-${randomBytes(4).toString('hex')}`;
  try {
    await writeFile(draft, JSON.stringify({ v: 1, current, sent }), { mode: 0o600, flush: true });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
