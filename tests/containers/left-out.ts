/** Names the tests that a run without a container engine leaves out. */
import { SERVERS_SWITCH } from '../e2e/kit/servers-switch.ts';
import { CONTAINERS_PROJECT, deploymentFiles, e2eOnBuses } from './files-on-containers.ts';

/** A file that was run. */
export interface RunFile {
  /** Its absolute path. */
  readonly file: string;
  /** Its project in vitest. */
  readonly project: string;
  /** How many tests it has. */
  readonly tests: number;
}

/** The line; null where nothing was left out, or none of it was asked for. */
export function leftOut(files: readonly RunFile[]): string | null {
  // A run on chosen servers has no containers.
  if (process.env[SERVERS_SWITCH] || files.some(({ project }) => project === CONTAINERS_PROJECT)) return null;
  const onBuses = new Set(e2eOnBuses());
  const e2e = files.filter(({ file }) => onBuses.has(file));
  if (e2e.length === 0) return null;
  const tests = e2e.reduce((sum, one) => sum + one.tests, 0);
  return (
    `NOT RUN, as no container engine answers: ${tests} tests of ${e2e.length} e2e files on a NATS container, ` +
    `and the ${deploymentFiles().length} file that brings docker-compose.yml up`
  );
}
