/** A question to whoever sits there, before something that cannot be taken back. */
import { createInterface } from 'node:readline/promises';
import { standardStreams } from './streams.ts';

/** Asks, and takes nothing but y or yes for one. Only where `isInteractive()`. */
export async function askYes(question: string): Promise<boolean> {
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await asking.question(`${question} [y/N] `)).trim());
  } catch (error) {
    // Ctrl-C and Ctrl-D are a no.
    if ((error as { code?: string }).code !== 'ABORT_ERR') throw error;
    standardStreams.err('\n');
    return false;
  } finally {
    asking.close();
  }
}
