/** AG-UI: requests, runs and their events. */
export { RunInput, readRunInput } from './run-input.ts';
export { startRun } from './serve-run.ts';
