/** The demo. */
import { EXIT, type ExitCode } from '../line/cli-error.ts';
import type { Invocation } from '../line/command-spec.ts';

/** Plays it. */
export async function playDemo(_invocation: Invocation): Promise<ExitCode> {
  return EXIT.ok;
}
