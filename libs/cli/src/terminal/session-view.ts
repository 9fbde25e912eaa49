/** The views of a session: as lines, or as JSON lines. `live-view/` has the view for a terminal. */
import { printable, printableJson, topState, type UiEvent } from '@coxswain/client';
import type { ChildSession } from '@coxswain/client/transport';
import type { JournalRecord } from '@coxswain/protocol';
import { childLines, eventLine } from './event-lines.ts';
import type { Style } from './style.ts';

/** A view of one session. */
export interface SessionView {
  /** Shows a record by its events. */
  record(record: JournalRecord, events: readonly UiEvent[]): void;
  /** Processes a record before the first one to show: for a view that keeps a state. */
  past?(record: JournalRecord, events: readonly UiEvent[]): void;
  /** Shows the events of a delta. */
  live(events: readonly UiEvent[]): void;
  /** Shows a record of a child session: pending approvals and their decisions. */
  child(record: JournalRecord, events: readonly UiEvent[], child: ChildSession): void;
  /** Shows a text that is not of the session: a hint, or a failed command. */
  notice(text: string): void;
  close(): void;
}

/** The output of a process. Writes never fail here, because a write error ends the process. */
export interface Streams {
  out(text: string): void;
  err(text: string): void;
}

/** One JSON object per line: every event of every record, with the session, the number and the time of the record. */
export function jsonView(streams: Streams): SessionView {
  return {
    record(record) {
      const { session_id, n, at } = record;
      for (const event of record.events) streams.out(`${JSON.stringify({ session_id, n, at, ...event })}\n`);
    },
    live() {},
    child({ session_id, n, at, events }) {
      for (const event of events)
        if (OF_A_CHILD.has(event.type)) streams.out(`${JSON.stringify({ session_id, n, at, ...event })}\n`);
    },
    notice: (text) => streams.err(`${printable(text)}\n`),
    close() {},
  };
}

/** Lines: the answer on stdout, everything else on stderr. */
export function plainView(streams: Streams, style: Style): SessionView {
  // Whether a text is the answer is known only when the run ends or continues. Until then the text is held back.
  let waiting = '';
  let newest = '';
  // The line after an interrupted answer. It follows the text: after stdout if the run ends here, else after stderr.
  let interruption = '';
  const showInterruption = () => {
    if (interruption !== '') streams.err(`${interruption}\n`);
    interruption = '';
  };
  const goOn = () => {
    if (waiting !== '') streams.err(withEnd(waiting));
    waiting = '';
    showInterruption();
  };
  const answer = () => {
    if (newest !== '') streams.out(withEnd(newest));
    waiting = '';
    newest = '';
    showInterruption();
  };
  const show = (events: readonly UiEvent[]) => {
    for (const event of events) {
      const line = eventLine(event, style);
      if (event.type === 'answer_ended' && event.partial) {
        newest = waiting;
        interruption = line ?? '';
        continue;
      }
      if (interruption !== '' && event.type !== 'run_ended' && (line !== null || event.type === 'text_appended')) {
        goOn();
        newest = '';
      }
      if (event.type === 'text_appended') waiting += event.text;
      else if (event.type === 'answer_restarted') waiting = '';
      else if (event.type === 'answer_ended') newest = waiting;
      else if (GOES_ON.has(event.type)) goOn();
      // The last answer may have been followed by calls that ended the run. It is still the answer.
      else if (event.type === 'run_ended') {
        // A program that requested JSON parses stdout, which has the value or nothing.
        if (event.output !== undefined) newest = printableJson(event.output);
        else if (event.error?.code === 'output_invalid') {
          goOn();
          newest = '';
        }
        answer();
      }
      // A daemon that becomes idle has finished a job, and its answer belongs to the job.
      else if (event.type === 'state_changed' && topState(event.state) === 'daemon_idle') answer();
      if (line !== null) streams.err(`${line}\n`);
    }
  };
  return {
    record: (_record, events) => show(events),
    live: show,
    child: (_record, events, child) => {
      for (const line of childLines(events, child, style)) streams.err(`${line}\n`);
    },
    notice: (text) => streams.err(`${printable(text)}\n`),
    close: goOn,
  };
}

const GOES_ON: ReadonlySet<UiEvent['type']> = new Set([
  'turn_started',
  'call_started',
  'call_ended',
  'approval_needed',
]);

/** The events of a child in JSON lines: a run that waits for the child may be waiting for these approvals. */
const OF_A_CHILD: ReadonlySet<string> = new Set(['approval_requested', 'approval_decided']);

function withEnd(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}
