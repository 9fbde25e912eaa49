/** AG-UI: requests, runs and their events. */
export { RunInput, readRunInput } from './run-input.ts';
export { serveRun } from './serve-run.ts';
