/** AG-UI: requests, runs and their events. */
export { RunInput, readRunInput } from './run-input.ts';
export { startRun } from './serve-run.ts';
export { createMessageIds, SessionMessages } from './session-messages.ts';
export { stateAfter } from './state-reads.ts';
export { commandOfMessage } from './thread-ids.ts';
