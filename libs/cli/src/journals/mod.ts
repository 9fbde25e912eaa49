/** Journals and lists of sessions: export, import, traces, inspection and deletion. */
export type { CollectedTrace } from './collect-trace.ts';
export { deleteSessions } from './delete-sessions.ts';
export { deletedLine, deletingActor } from './deleted-line.ts';
export { exportedRecords, unprovenNewest, unprovenTail } from './exported-records.ts';
export { importTo, readableFile } from './import-file.ts';
export { journalSource, needsBus, type OpenJournal } from './journal-source.ts';
export { otlpLine } from './otlp-lines.ts';
export { pageOf, pageOfSessions } from './session-page.ts';
export { showFile, showSession } from './show-machine.ts';
