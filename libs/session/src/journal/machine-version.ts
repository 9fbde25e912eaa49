/** Journals that another version of the turn machine has made than the one that reads them. */
import type { JournalRecord } from '@coxswain/protocol';
import { MACHINE_VERSION, REPLAYED_VERSIONS } from '@coxswain/turn';

/** A journal was made by a machine of another version, which has decided otherwise than this release's does. */
export class MachineVersionUnknownError extends Error {
  readonly code = 'machine_version_unknown';
  /** The record that cannot be taken. */
  readonly n: number;
  readonly version: number;

  constructor(n: number, version: number, message: string) {
    super(message);
    this.n = n;
    this.version = version;
  }
}

/** The version of the machine that has made a run, by the record that begins it; undefined in all other records. */
export function machineOf({ events }: JournalRecord): number | undefined {
  for (const event of events) if (event.type === 'agent_start') return event.machine_version;
  return undefined;
}

/**
 * Refuses a record that begins a run which this release's machine does not compute again.
 * @throws MachineVersionUnknownError
 */
export function checkReplayed(record: JournalRecord, replayed: ReadonlySet<number> = REPLAYED_VERSIONS): void {
  const version = machineOf(record);
  if (version === undefined || replayed.has(version)) return;
  const own = [...replayed].join(', ');
  const message = `record ${record.n} starts a run of machine version ${version}; this release replays version ${own}`;
  throw new MachineVersionUnknownError(record.n, version, message);
}

/** What it is where a record's events do not lead this release's machine where the record says; null: nobody else's doing. */
export function otherMachine(n: number, made: number | undefined, diverged: string): Error | null {
  if (made === undefined || made === MACHINE_VERSION) return null;
  const message = `${diverged}: machine version ${made} wrote it; this release has version ${MACHINE_VERSION}`;
  return new MachineVersionUnknownError(n, made, message);
}
