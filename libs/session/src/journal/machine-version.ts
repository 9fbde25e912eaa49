/** Journals from another version of the turn machine. */
import type { JournalRecord } from '@coxswain/protocol';
import { MACHINE_VERSION, REPLAYED_VERSIONS } from '@coxswain/turn';

/** The journal comes from another version of the machine, which this release cannot replay, or which decided differently. */
export class MachineVersionUnknownError extends Error {
  readonly code = 'machine_version_unknown';
  /** Number of the record that cannot be taken. */
  readonly n: number;
  readonly version: number;

  constructor(n: number, version: number, message: string) {
    super(message);
    this.n = n;
    this.version = version;
  }
}

/** The machine version of a run, from the record that starts the run; undefined for other records. */
export function machineOf({ events }: JournalRecord): number | undefined {
  for (const event of events) if (event.type === 'agent_start') return event.machine_version;
  return undefined;
}

/**
 * Rejects a record that starts a run which this release cannot recompute.
 * @throws MachineVersionUnknownError
 */
export function rejectUnreplayable(record: JournalRecord, replayed: ReadonlySet<number> = REPLAYED_VERSIONS): void {
  const version = machineOf(record);
  if (version === undefined || replayed.has(version)) return;
  const own = [...replayed].join(', ');
  const message = `record ${record.n} starts a run of machine version ${version}; this release replays version ${own}`;
  throw new MachineVersionUnknownError(record.n, version, message);
}

/**
 * The error where a record's events do not reach the recorded state because of another version.
 * @param made the version that made the record; undefined where no record with it was read, as after a snapshot.
 * @returns null where this version made the record, and where `made` is undefined.
 */
export function otherMachine(n: number, made: number | undefined, diverged: string): Error | null {
  if (made === undefined || made === MACHINE_VERSION) return null;
  const message = `${diverged}: machine version ${made} wrote it; this release has version ${MACHINE_VERSION}`;
  return new MachineVersionUnknownError(n, made, message);
}
