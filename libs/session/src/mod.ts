/** Sessions at work: the runner, its effects, the host, replay. */
export { ruleHolder } from '@coxswain/turn';
export { assignPartitions } from './assign-partitions.ts';
export { type CommitBounds, type CommitResult, commit } from './commit.ts';
export { type DeleteOptions, type DeletePorts, type Deletion, deleteSession } from './delete-session.ts';
export { describeRecord } from './describe-record.ts';
export { type Difference, type Divergence, diffJournals, type JournalDiff } from './diff-journals.ts';
export { ExportedJournal } from './exported-journal.ts';
export {
  type Imported,
  type ImportPorts,
  ImportRefusedError,
  type ImportRequest,
  importJournal,
} from './import-journal.ts';
export {
  type ActorMessage,
  type EventMessage,
  INSPECT_VERSION,
  type InspectionMessage,
  type SnapshotMessage,
} from './inspection-messages.ts';
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
} from './load-session.ts';
export { type MachineDefinition, machineDefinition } from './machine-definition.ts';
export { type ProvisionPorts, personaVersion, provisionSession } from './provision-session.ts';
export { linesOf } from './read-lines.ts';
export { asDivergence, JournalReplay, ReplayDivergedError, replayJournal } from './replay-journal.ts';
export { RequestRates } from './request-rates.ts';
export { type RetentionJob, type RetentionOptions, startRetentionJob } from './retention-job.ts';
export { buildRecord, type RecordFrame, type SealedRecord, sealRecord, sha256Hex } from './seal-record.ts';
export { createSessionHost, type HostOptions, type HostPorts, type SessionHost } from './session-host.ts';
export { type InspectedFold, type InspectorOptions, SessionInspector } from './session-inspector.ts';
export {
  type Carried,
  type Dropped,
  type DropReason,
  type RunnerOptions,
  type RunnerPorts,
  SessionRunner,
} from './session-runner.ts';
export { statusOf } from './session-status.ts';
export type { ShownSnapshot } from './shown-state.ts';
export { type SweepOptions, type SweptBlobs, type SweptSession, sweepBlobs, sweepSessions } from './sweep.ts';
export { SessionSpans } from './trace/session-spans.ts';
export { Transcript, type TranscriptFrame } from './transcript.ts';
export { turnChart } from './turn-chart.ts';
