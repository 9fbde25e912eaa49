/**
 * The versions of the turn machine, and how this release treats journals of other versions.
 *
 * VERSION-1  A release raises MACHINE_VERSION if its machine would make another record from an input that the previous
 *            machine has recorded, or would fold that record's events to another state.
 * VERSION-2  REPLAYED_VERSIONS keeps an earlier version only if every journal of it is computed to the same bytes. The
 *            golden traces of its releases test that.
 * VERSION-3  Replay, fork and import reject a journal with a run of any other version: `machine_version_unknown`
 *            (`rejectUnreplayable` in libs/session). A host still loads a session with such a journal, as long as the
 *            events of each record lead to the state that the record names (`loadSession` in libs/session).
 */

/** The version of this release's machine. */
export const MACHINE_VERSION = 3;

/** The versions whose journals this machine computes again, byte for byte. */
export const REPLAYED_VERSIONS: ReadonlySet<number> = new Set([MACHINE_VERSION]);
