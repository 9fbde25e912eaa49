/** What a run without a container engine has left out, in a line that nobody can take for a success. */
import { SERVERS_SWITCH } from '../e2e/kit/servers-switch.ts';
import { deploymentFiles, e2eOnBuses } from './files-on-containers.ts';

/** A file that was run. */
export interface RunFile {
  /** Its absolute path. */
  readonly file: string;
  /** Its project in vitest; the empty text where there is only one, which is so where no engine answers. */
  readonly project: string;
  /** How many tests it has. */
  readonly tests: number;
}

/** The line; null where nothing was left out, or none of it was asked for. */
export function leftOut(files: readonly RunFile[]): string | null {
  // Whoever has chosen the servers of a run has asked for no others.
  if (process.env[SERVERS_SWITCH] || files.some(({ project }) => project !== '')) return null;
  const onBuses = new Set(e2eOnBuses());
  const e2e = files.filter(({ file }) => onBuses.has(file));
  if (e2e.length === 0) return null;
  const tests = e2e.reduce((sum, one) => sum + one.tests, 0);
  return (
    `NOT RUN, as no container engine answers: ${tests} tests of ${e2e.length} e2e files on a NATS container, ` +
    `and the ${deploymentFiles().length} file that brings docker-compose.yml up`
  );
}
