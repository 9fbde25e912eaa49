/**
 * Flags of Node for processes of tests, in which most functions run a few times only: the default budget spends a tenth of the
 * CPU time on optimizing them. Node 22 and newer have no such flag.
 */
export const OPTIMIZE_RARELY: readonly string[] = process.versions.node.startsWith('20.')
  ? ['--interrupt-budget=2000000']
  : [];
