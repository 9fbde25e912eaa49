/** The versions of everything that Coxswain stores or sends, in one value that the command, the gateway and the documentation report. */
import { RECORD_VERSION, TOMBSTONE_VERSION, VERSION } from '@coxswain/protocol';
import { MACHINE_VERSION } from '@coxswain/turn';
import { SNAPSHOT_VERSION } from './load-session.ts';

/** The versions of this release. The members are named as they are reported in JSON. */
export const FORMAT_VERSIONS = {
  /** Of the packages and of the image. */
  version: VERSION,
  /** Of the turn machine: whether a run can be replayed byte for byte. */
  machine_version: MACHINE_VERSION,
  /** Of the shape of a journal's records. */
  record_version: RECORD_VERSION,
  /** Of the shape of the record that replaces the journal of a deleted session. */
  tombstone_version: TOMBSTONE_VERSION,
  /** Of the shape of snapshots, which are caches. */
  snapshot_version: SNAPSHOT_VERSION,
} as const;
