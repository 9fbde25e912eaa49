/**
 * The versions of the turn machine, and how this release treats journals of other versions.
 *
 * VERSION-1  A release raises MACHINE_VERSION if its machine would make another record from an input that the previous
 *            machine has recorded, or would fold that record's events to another state.
 * VERSION-2  REPLAYED_VERSIONS keeps an earlier version only if every journal of it is computed to the same bytes. The
 *            golden traces of its releases test that.
 * VERSION-3  Replay and fork reject a journal of any other version with `machine_version_unknown` (`rejectUnreplayable` in
 *            libs/session). A host loads its sessions as long as their events fold to the states that their records name
 *            (`loadSession` in libs/session).
 */

/** The version of this release's machine. */
export const MACHINE_VERSION = 3;

/** The versions whose journals this machine computes again, byte for byte. */
export const REPLAYED_VERSIONS: ReadonlySet<number> = new Set([MACHINE_VERSION]);
