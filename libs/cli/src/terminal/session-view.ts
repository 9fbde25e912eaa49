/** Where a session is shown: as lines, or as JSON lines. A terminal has `live-view/`. */
import { topState, type UiEvent } from '@coxswain/client';
import type { JournalRecord } from '@coxswain/protocol';
import type { ChildSession } from '../run/child-approvals.ts';
import { childLines, eventLine } from './event-lines.ts';
import type { Style } from './style.ts';

/** A view of one session. */
export interface SessionView {
  /** A record, and what it shows. */
  record(record: JournalRecord, events: readonly UiEvent[]): void;
  /** A record before the ones to show, and its events: for a view that keeps a state. */
  past?(record: JournalRecord, events: readonly UiEvent[]): void;
  /** What a delta shows. */
  live(events: readonly UiEvent[]): void;
  /** A record of a session below: what waits there for a person is shown, and what was decided. */
  child(record: JournalRecord, events: readonly UiEvent[], child: ChildSession): void;
  /** Something that is not of the session: a hint, a command that failed. */
  notice(text: string): void;
  close(): void;
}

/** Writes of a process; both never fail here, a reader that has gone ends the process. */
export interface Streams {
  out(text: string): void;
  err(text: string): void;
}

/** One JSON object a line: every event of every record, with the record's session, number and time. */
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
    notice: (text) => streams.err(`${text}\n`),
    close() {},
  };
}

/** Lines: the answer on stdout, the rest on stderr. */
export function plainView(streams: Streams, style: Style): SessionView {
  // Whether a text is the answer is known only when the run ends or goes on: until then it waits.
  let waiting = '';
  let newest = '';
  // The line after an interrupted answer. It waits for the stream of the text: stdout if the run ends here, else stderr.
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
      // The last answer may have been followed by calls that ended the run: it is the answer all the same.
      else if (event.type === 'run_ended') {
        // Whoever asked for JSON parses stdout: it has the value, or nothing.
        if (event.output !== undefined) newest = JSON.stringify(event.output, null, 2);
        else if (event.error?.code === 'output_invalid') {
          goOn();
          newest = '';
        }
        answer();
      }
      // A daemon that idles has done a job, and its answer is the job's.
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
    notice: (text) => streams.err(`${text}\n`),
    close: goOn,
  };
}

const GOES_ON: ReadonlySet<UiEvent['type']> = new Set([
  'turn_started',
  'call_started',
  'call_ended',
  'approval_needed',
]);

/** What a reader of JSON lines is told of a child: what a run that waits for it is waiting for. */
const OF_A_CHILD: ReadonlySet<string> = new Set(['approval_requested', 'approval_decided']);

function withEnd(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}
