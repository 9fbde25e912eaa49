/**
 * The versions of the turn machine's meaning, and what becomes of journals that an earlier one has made.
 *
 * VERSION-1  MACHINE_VERSION rises with a release whose machine would make another record of an input that the one
 *     before it has recorded, or fold its events to another state.
 * VERSION-2  An earlier version stays among those that are replayed only if every journal of it comes out the same. The
 *     golden traces of its releases hold that; one that they refute is taken out.
 * VERSION-3  A journal of any other version is refused by replay and fork as `machine_version_unknown`. Sessions of it
 *     go on as long as their events fold to the states that their records name; where they do not, a host refuses them
 *     by that code.
 */

/** The version of this release's machine. */
export const MACHINE_VERSION = 3;

/** The versions of which this machine computes journals again, byte for byte. */
export const REPLAYED_VERSIONS: ReadonlySet<number> = new Set([MACHINE_VERSION]);
