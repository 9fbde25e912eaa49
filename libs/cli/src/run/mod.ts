/** Starts and follows runs, and sends commands to sessions. */
export { ApprovalChanges } from './approval-changes.ts';
export { chooseCall, decide } from './decide.ts';
export { exitCodeOf } from './exit-code-of.ts';
export { type FollowEnd, followSession, type Participant } from './follow-session.ts';
export { forkChanges } from './fork-changes.ts';
export { inject } from './inject.ts';
export { joinSession } from './join-session.ts';
export { expectKnownPersona } from './known-persona.ts';
export { McpAccess } from './mcp-access.ts';
export { queuedMessage } from './queued-message.ts';
export { textOrInput } from './read-input.ts';
export { type ReportedBus, reportSessions, sessionLines } from './report-sessions.ts';
export { runPrompt } from './run-prompt.ts';
export { acceptedAtMost, type SentResult, sendToSession } from './send-to-session.ts';
export { servedPersonaText, showServedPersonas } from './served-personas.ts';
export { expectRoot, KEY_VARIABLES, keysFound, modelOf, sessionIdOf, startBody } from './start-body.ts';
export { unattendedParticipant } from './unattended-participant.ts';
export { untilProcessed } from './until-processed.ts';
