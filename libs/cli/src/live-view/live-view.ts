/**
 * The view of a session on a terminal: finished output flows into the scrollback, and the live part below it is
 * redrawn. With a keyboard, a person can take part: lines steer, approvals are decided, Ctrl-C leaves.
 */
import type { ReadStream, WriteStream } from 'node:tty';
import type { Session, UiEvent } from '@coxswain/client';
import type { ChildSession, OpenApproval } from '@coxswain/client/transport';
import type { JournalRecord, StopReason } from '@coxswain/protocol';
import type { Participant } from '../run/mod.ts';
import { hangUp } from '../service/mod.ts';
import type { SessionView, Style } from '../terminal/mod.ts';
import { carryOut } from './carry-out.ts';
import type { Key } from './composer.ts';
import { finishedRows } from './finished-lines.ts';
import { JobControl } from './job-control.ts';
import { Keyboard } from './keyboard.ts';
import { LiveRegion } from './live-region.ts';
import { recordDetails, reduceView } from './reduce-view.ts';
import { drawFrame, isBusy, SPINNER_MS } from './view-frame.ts';
import { type FinishedItem, initialView, type ViewAction, type ViewEffect } from './view-state.ts';

/** The participation of a person. */
export interface Attendance {
  /** Null if the session does not exist yet: the first line is its prompt and goes to `onPrompt`. */
  readonly session: Session | null;
  readonly onPrompt?: (text: string) => void;
  /** Leaves the session, which continues without this view. */
  readonly leave: () => void;
  /** Whether a line to a session that has ended starts its next run. */
  readonly startsRuns?: boolean;
  /** The text that Enter on an empty line sends; null for nothing. */
  readonly suggestion?: () => string | null;
  /** The text that is shown after Ctrl-C. Default: {@link LEAVE_QUESTION}. */
  readonly question?: string;
}

/** The default text after Ctrl-C. */
const LEAVE_QUESTION = 'Ctrl-C again or d: detach, the session continues · c: cancel the run · any other key: stay';
/** The time between two frames, in ms: 15 frames per second. */
const FRAME_MS = 66;
/** Maximum number of commands in flight, so that a held key sends no more. */
const SENDS_MAX = 32;
/** Rejections of a decision about a call that does not wait for it. */
const NO_LONGER_PENDING: ReadonlySet<string> = new Set(['already_decided', 'call_unknown']);
/** Finished items are written with the next frame, or at once if there are this many. */
const UNWRITTEN_MAX = 1_000;

/** The view of a session on a terminal. Call `close` to give the terminal back. */
export class LiveView implements SessionView, Participant {
  readonly #out: WriteStream;
  readonly #style: Style;
  readonly #region: LiveRegion;
  readonly #sends = new Set<Promise<void>>();
  readonly #onResize = () => this.#redraw();
  #state = initialView(null);
  #attendance: Attendance | null = null;
  #keyboard: Keyboard | null = null;
  #jobs: JobControl | null = null;
  #unwritten: FinishedItem[] = [];
  #endsWithGap = true;
  /** Whether the newest finished item is text. An empty row separates it from an item of another kind. */
  #endsWithText = false;
  #drawnAtMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #isPaused = false;
  #isClosed = false;

  constructor(out: WriteStream, style: Style) {
    this.#out = out;
    this.#style = style;
    this.#region = new LiveRegion(out);
    out.on('resize', this.#onResize);
  }

  /** The stop reason of the newest run; null while a run is in progress. */
  get stopReason(): StopReason | null {
    return this.#state.stopReason;
  }

  /** Opens the keyboard, so that a person can take part. */
  attend(input: ReadStream, attendance: Attendance): void {
    this.#attendance = attendance;
    this.#state = { ...this.#state, sessionId: attendance.session?.id ?? null };
    this.#keyboard = new Keyboard(
      input,
      (text) => this.#out.write(text),
      (text, key) => this.#key(text, key),
      // A closed terminal is no request to continue in the background: the process stops as by SIGHUP.
      () => {
        if (!hangUp()) attendance.leave();
      },
    );
    this.#jobs = new JobControl({ onStop: () => this.#pause(), onContinue: () => this.#continue() });
    this.#draw();
  }

  record(record: JournalRecord, events: readonly UiEvent[]): void {
    this.#take({ type: 'record', events, details: recordDetails(record), isPast: false });
  }

  past(record: JournalRecord, events: readonly UiEvent[]): void {
    this.#take({ type: 'record', events, details: recordDetails(record), isPast: true });
  }

  live(events: readonly UiEvent[]): void {
    this.#take({ type: 'live', events });
  }

  child(_record: JournalRecord, events: readonly UiEvent[], child: ChildSession): void {
    this.#take({ type: 'child', events, child });
  }

  notice(text: string, tone: 'dim' | 'yellow' = 'dim'): void {
    this.#take({ type: 'notice', text, tone });
  }

  approvalsOpen(approvals: readonly OpenApproval[]): 'go_on' {
    this.#take({ type: 'approvals', approvals });
    return 'go_on';
  }

  /** Writes the remaining output, and gives the terminal back. */
  close(): void {
    if (this.#isClosed) return;
    this.#take({ type: 'close' });
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#region.update(this.#finishedRows(), { rows: [], cursor: null });
    this.#region.clear();
    this.#out.off('resize', this.#onResize);
    this.#keyboard?.close();
    this.#jobs?.close();
  }

  /** Waits for the commands in flight, each of which has its own time limit. */
  async sent(): Promise<void> {
    await Promise.all(this.#sends);
  }

  #key(text: string | undefined, key: Key): void {
    this.#suggest();
    this.#take({ type: 'key', text, key });
  }

  /** The suggestion for Enter can change with every event, also between two frames. */
  #suggest(): void {
    const text = this.#attendance?.suggestion?.() ?? null;
    this.#state = reduceView(this.#state, { type: 'suggestion', text }).state;
  }

  #take(action: ViewAction): void {
    const { state, finished, effects } = reduceView(this.#state, action);
    this.#state = state;
    if (this.#isClosed) {
      // The terminal was given back: reports of late commands are printed as plain lines.
      for (const item of finished) this.#out.write(`${this.#rowsOf(item).join('\n')}\n`);
      return;
    }
    this.#unwritten.push(...finished);
    for (const effect of effects) this.#do(effect);
    if (this.#unwritten.length >= UNWRITTEN_MAX) this.#draw();
    else this.#drawSoon();
  }

  #do(effect: ViewEffect): void {
    switch (effect.do) {
      case 'leave':
        this.#attendance?.leave();
        return;
      case 'pause_process':
        this.#jobs?.stop();
        return;
      case 'redraw':
        this.#redraw();
        return;
      case 'send':
        this.#send(effect);
    }
  }

  #send({ command, asked, running }: Extract<ViewEffect, { do: 'send' }>): void {
    if (this.#attendance === null) return;
    const { session, startsRuns = false, onPrompt } = this.#attendance;
    if (session === null) {
      if (command.do === 'steer') onPrompt?.(command.text);
      else this.notice('  the session starts with a prompt', 'yellow');
      return;
    }
    const fail = ({ code = '', message }: { readonly code?: string; readonly message: string }) => {
      this.notice(`  not done: ${code === '' ? '' : `${code}: `}${message}`, 'yellow');
      if (asked !== undefined && !NO_LONGER_PENDING.has(code)) this.#take({ type: 'undecided', approval: asked });
    };
    if (this.#sends.size >= SENDS_MAX) {
      fail({ message: 'too many commands are in flight; wait a moment' });
      return;
    }
    const meant = { asked, running, startsRuns };
    const sending: Promise<void> = carryOut(session, command, meant, (text) => this.notice(text))
      // A rejection is also in the journal, and is shown from there. Every send ends at its time limit.
      .catch(fail)
      .finally(() => {
        this.#sends.delete(sending);
      });
    this.#sends.add(sending);
  }

  /** Draws now, or when the time between two frames is over. */
  #drawSoon(): void {
    if (this.#isPaused) return;
    const waitMs = this.#drawnAtMs + FRAME_MS - performance.now();
    if (waitMs <= 0) this.#draw();
    else this.#schedule(waitMs);
  }

  #draw(): void {
    if (this.#isPaused || this.#isClosed) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#drawnAtMs = performance.now();
    this.#suggest();
    const finished = this.#finishedRows();
    const frame = drawFrame(this.#state, {
      columns: this.#columns,
      rows: this.#out.rows || 24,
      nowMs: Date.now(),
      hasKeyboard: this.#keyboard !== null,
      question: this.#attendance?.question ?? LEAVE_QUESTION,
      startsRuns: this.#attendance?.startsRuns ?? false,
      followsText: this.#endsWithText && !this.#endsWithGap,
      style: this.#style,
    });
    this.#region.update(finished, frame);
    if (isBusy(this.#state)) this.#schedule(SPINNER_MS);
  }

  #schedule(afterMs: number): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#draw();
    }, afterMs);
    this.#timer.unref();
  }

  /** Some terminals report a width of 0, which means that it is unknown. */
  get #columns(): number {
    return this.#out.columns || 80;
  }

  #finishedRows(): string[] {
    const rows = this.#unwritten.flatMap((item) => this.#rowsOf(item));
    this.#unwritten = [];
    return rows;
  }

  #rowsOf(item: FinishedItem): string[] {
    const { rows, gap } = finishedRows(item, Math.max(20, this.#columns) - 1, this.#style);
    if (rows.length === 0) return [];
    const isText = item.kind === 'markdown' || item.kind === 'reasoning';
    const isApart = gap || (this.#endsWithText && !isText);
    const separated = isApart && !this.#endsWithGap ? ['', ...rows] : [...rows];
    this.#endsWithGap = rows.at(-1) === '';
    this.#endsWithText = isText;
    return separated;
  }

  #redraw(): void {
    if (this.#isPaused || this.#isClosed) return;
    this.#region.clear(this.#columns);
    this.#draw();
  }

  #pause(): void {
    this.#region.update(this.#finishedRows(), { rows: [], cursor: null });
    this.#region.clear();
    this.#isPaused = true;
    this.#keyboard?.pause();
  }

  #continue(): void {
    this.#isPaused = false;
    this.#keyboard?.resume();
    this.#draw();
  }
}
