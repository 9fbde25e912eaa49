/** Asks the person at the terminal for confirmation of an irreversible action. */
import { createInterface } from 'node:readline/promises';
import { standardStreams } from './streams.ts';

/** Asks a question; only `y` or `yes` confirms. Requires `isInteractive()`. */
export async function askYes(question: string): Promise<boolean> {
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await asking.question(`${question} [y/N] `)).trim());
  } catch (error) {
    // Ctrl-C and Ctrl-D mean no.
    if ((error as { code?: string }).code !== 'ABORT_ERR') throw error;
    standardStreams.err('\n');
    return false;
  } finally {
    asking.close();
  }
}
