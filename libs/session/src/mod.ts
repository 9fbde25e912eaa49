/**
 * Entry point of `@coxswain/session`, the session runtime: the host and its runners, effects, journals and their
 * replay, traces, and views of a session.
 */
export { currentBinding } from '@coxswain/turn';
export { personaVersion } from './effects/find-persona.ts';
export { type ProvisionPorts, provisionSession } from './effects/provision-session.ts';
export { assignPartitions } from './hosting/assign-partitions.ts';
export type { HostOptions, HostPorts, SessionHost } from './hosting/host-interface.ts';
export { RequestRates } from './hosting/request-rates.ts';
export { createSessionHost } from './hosting/session-host.ts';
export {
  type AppendBounds,
  appendUntilKnown,
  buildRecord,
  type RecordFrame,
  type SealedRecord,
  type StoreResult,
  sealRecord,
  sha256Hex,
} from './journal/append-record.ts';
export { type DeleteOptions, type DeletePorts, type Deletion, deleteSession } from './journal/delete-from-outside.ts';
export { describeRecord } from './journal/describe-record.ts';
export { type Difference, type Divergence, diffJournals, type JournalDiff } from './journal/diff-journals.ts';
export {
  type Imported,
  type ImportPorts,
  ImportRefusedError,
  type ImportRequest,
  importJournal,
} from './journal/import-journal.ts';
export {
  ChainBrokenError,
  FORMAT_VERSIONS,
  FoldDivergedError,
  type LoadedSession,
  type LoadPorts,
  loadSession,
  readRecord,
  readTranscript,
  snapshotBytes,
} from './journal/load-session.ts';
export { ExportedJournal } from './journal/read-export.ts';
export { linesOf } from './journal/read-lines.ts';
export { asDivergence, JournalReplay, ReplayDivergedError, replayJournal } from './journal/replay-journal.ts';
export { type RetentionJob, type RetentionOptions, startRetentionJob } from './journal/retention-job.ts';
export { type SweepOptions, type SweptBlobs, type SweptSession, sweepBlobs, sweepSessions } from './journal/sweep.ts';
export type { RunnerOptions, RunnerPorts } from './runner/runner-ports.ts';
export type { Carried, LeaveReason, LeftSession } from './runner/session-exit.ts';
export { SessionRunner } from './runner/session-runner.ts';
export { statusOf } from './runner/session-status.ts';
export { SessionSpans } from './trace/session-spans.ts';
export {
  type ActorMessage,
  type EventMessage,
  INSPECT_VERSION,
  type InspectionMessage,
  type SnapshotMessage,
} from './view/inspection-messages.ts';
export { type MachineDefinition, machineDefinition } from './view/machine-definition.ts';
export { type InspectedFold, type InspectorOptions, SessionInspector } from './view/session-inspector.ts';
export type { ShownSnapshot } from './view/shown-state.ts';
export { Transcript, type TranscriptFrame } from './view/transcript.ts';
export { turnChart } from './view/turn-chart.ts';
