/**
 * `npm run trace:replay`: computes every trace again, and compares each record with its bytes. `COX_CHART=xstate` runs
 * plain XState instead of the compiled chart.
 */
import '../chart-runner.ts';
import { replayJournal } from '@coxswain/session';
import { readTrace, traceBlobs, traceNames } from './trace-files.ts';

let diverged = 0;
for (const name of traceNames()) {
  try {
    const { records } = await replayJournal(readTrace(name), traceBlobs);
    console.log(`${name}: ${records} records, byte for byte`);
  } catch (error) {
    diverged++;
    const { code = 'error', message } = error as Error & { readonly code?: string };
    console.log(`${name}: ${code}: ${message}`);
  }
}
if (diverged > 0) {
  console.log(`${diverged} traces do not replay. If the machine was meant to change, see tests/traces/README.md.`);
  process.exitCode = 1;
}
