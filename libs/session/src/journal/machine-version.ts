/** Journals from another version of the turn machine. */
import type { JournalRecord } from '@coxswain/protocol';
import { MACHINE_VERSION, REPLAYED_VERSIONS } from '@coxswain/turn';

/**
 * A record comes from another version of the machine: this release cannot replay its run, or its events do not lead the
 * machine of this release to the recorded state.
 */
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

/** The machine version of a run, from the record with its `agent_start`; undefined for other records. */
export function machineOf({ events }: JournalRecord): number | undefined {
  for (const event of events) if (event.type === 'agent_start') return event.machine_version;
  return undefined;
}

/**
 * Rejects a record with the start of a run whose machine version this release does not replay.
 * @param replayed the machine versions that this release replays.
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
 * The error for a record whose events the machine does not accept, or which lead it to another state than the recorded
 * one, if another machine version wrote the record.
 * @param made the version that wrote the record; undefined where no record that names it was read, as after a snapshot.
 * @param diverged what happened, for the message.
 * @returns null where this version wrote the record, and where `made` is undefined.
 */
export function otherMachine(n: number, made: number | undefined, diverged: string): Error | null {
  if (made === undefined || made === MACHINE_VERSION) return null;
  const message = `${diverged}: machine version ${made} wrote it; this release has version ${MACHINE_VERSION}`;
  return new MachineVersionUnknownError(n, made, message);
}
