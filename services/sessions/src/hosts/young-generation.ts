/** The size of the young generation of a session host's heap. */

/** Node reads underscores in the names of V8's options as hyphens. */
const NAMES_SIZE = /semi[-_]space[-_]size/;

/**
 * Node flags for the young generation of a host with hundreds of running sessions: none if `NODE_OPTIONS` names a size,
 * because flags of the command line would override it.
 *
 * The default of Node 20, 16 MiB, costs some percent more CPU. The default of Node 24, 64 MiB, needs 60 MiB more memory
 * without less CPU (docs/operations/plan-capacity.md).
 *
 * @param env environment of the host.
 */
export function youngGeneration({ NODE_OPTIONS = '' }: NodeJS.ProcessEnv): readonly string[] {
  return NAMES_SIZE.test(NODE_OPTIONS) ? [] : ['--max-semi-space-size=32'];
}
