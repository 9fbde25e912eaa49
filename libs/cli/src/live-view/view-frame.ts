/** The live part of the view: the rows at the bottom of the terminal, which are redrawn. */
import { printable } from '@coxswain/client';
import {
  columnsOf,
  dollars,
  duration,
  firstLine,
  graphemesOf,
  headWithinColumns,
  type Style,
  wrapStyled,
} from '../terminal/mod.ts';
import type { Composer } from './composer.ts';
import { callSubject } from './edit-diff.ts';
import { markdownLines } from './markdown-lines.ts';
import { openMarkdown } from './markdown-stream.ts';
import type { QueuedMessage, RunningCall, ViewState } from './view-state.ts';

/** The options of a frame. */
export interface FrameOptions {
  /** The size of the terminal, in columns and rows. */
  readonly columns: number;
  readonly rows: number;
  /** The current time, in ms since 1970, for the durations of running calls. */
  readonly nowMs: number;
  /** Whether a person can type. */
  readonly hasKeyboard: boolean;
  /** The text that is shown after Ctrl-C. */
  readonly question: string;
  /** Whether Enter starts the next run of a session that has ended. */
  readonly startsRuns: boolean;
  /** Whether the row above the frame is text. */
  readonly followsText: boolean;
  readonly style: Style;
}

/** Rows, each narrower than a terminal of 20 or more columns, and the position of the cursor; null for no cursor. */
export interface Frame {
  readonly rows: readonly string[];
  readonly cursor: { readonly row: number; readonly column: number } | null;
}

const SPINNER = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/** The duration of one frame of the spinner, in ms. */
export const SPINNER_MS = 100;
const QUEUE_ROWS = 3;
const CALLS_SHOWN = 4;
const COMPOSER_ROWS = 8;
/** Below this height, in rows, the frame has neither a separator line nor the queue. */
const SMALL_ROWS = 10;

const PHASES: Readonly<Record<string, string>> = {
  provisioning: 'getting ready',
  assistant_streaming: 'thinking',
  function_execute: 'working',
  function_awaiting_approval: 'waiting for approval',
  steering_check: 'working',
  daemon_idle: 'idle',
  suspended: 'suspended',
  tearing_down: 'ending',
};
const BUSY: ReadonlySet<string> = new Set([
  'provisioning',
  'assistant_streaming',
  'function_execute',
  'steering_check',
  'tearing_down',
]);

/** Whether the frame changes with time: the spinner and the durations must be redrawn. */
export function isBusy(state: ViewState): boolean {
  return state.calls.length > 0 || (state.phase !== null && BUSY.has(state.phase));
}

/** Draws the frame: at most one row less than a terminal of four or more rows has. */
export function drawFrame(state: ViewState, options: FrameOptions): Frame {
  const columns = Math.max(20, options.columns) - 1;
  const rows = Math.max(4, options.rows) - 1;
  const isSmall = options.rows < SMALL_ROWS;
  const draw = { ...options, columns };
  const typed = options.hasKeyboard ? composerRows(state, draw, Math.min(COMPOSER_ROWS, Math.ceil(rows / 3))) : null;
  const status = statusRow(state, draw);
  const rule = typed === null || isSmall ? [] : [options.style.dim('─'.repeat(columns))];
  const below = [...rule, ...(typed?.rows ?? []), ...(status === null ? [] : [status])];
  let left = Math.max(0, rows - below.length);
  // Approvals have priority, then the queue, then running calls. The text gets the remaining rows.
  const take = (wanted: readonly string[], most = left): readonly string[] => {
    const taken = wanted.slice(0, Math.min(most, left));
    left -= taken.length;
    return taken;
  };
  const approvals = take(approvalRows(state, draw));
  const queue = isSmall ? [] : take(queueRows(state.queue, draw));
  const calls = take(callRows(state, draw), Math.ceil(left / 2));
  const open = openRows(state, draw);
  // An empty row between the text and the rows below it, if there is space.
  const text = left === 0 ? [] : open.slice(-left);
  const followsText = text.length > 0 || options.followsText;
  if (followsText && text.length < left && calls.length + queue.length + approvals.length > 0) text.push('');
  const above = [...text, ...calls, ...queue, ...approvals];
  const cursor =
    typed === null ? null : { row: above.length + rule.length + typed.cursor.row, column: typed.cursor.column };
  return { rows: [...above, ...below], cursor };
}

type Draw = FrameOptions;

/** The unfinished end of the answer. */
function openRows(state: ViewState, { columns, style }: Draw): string[] {
  const reasoning =
    state.reasoning.trim() === ''
      ? []
      : wrapStyled(style.dim(style.italic(state.reasoning.replace(/^\n+/, ''))), columns, { first: '  ' });
  const rows = openMarkdown(state.answer).flatMap(({ token, gap }) => [
    ...(gap ? [''] : []),
    ...markdownLines(token, columns, style),
  ]);
  return [...reasoning, ...rows];
}

function callRows(state: ViewState, { columns, nowMs, style }: Draw): string[] {
  const shown = state.calls.slice(-CALLS_SHOWN);
  const hidden = state.calls.length - shown.length;
  const rows = shown.flatMap((call) => callLines(call, state.isUnfolded, columns, nowMs, style));
  return hidden === 0 ? rows : [style.dim(`  … and ${hidden} more calls`), ...rows];
}

function callLines(call: RunningCall, unfolded: boolean, columns: number, nowMs: number, style: Style): string[] {
  const elapsedMs = Math.max(0, nowMs - call.sinceMs);
  const took = ` · ${liveDuration(elapsedMs)}`;
  const room = Math.max(8, columns - 5 - columnsOf(call.tool) - columnsOf(took));
  const head = `  ${style.cyan(spinner(nowMs))} ${style.bold(call.tool)} ${style.dim(`${headWithinColumns(call.summary, room)}${took}`)}`;
  const progress = call.progress.slice(unfolded ? 0 : -1).filter((line) => line.trim() !== '');
  return [head, ...progress.map((line) => `    ${style.dim(`└ ${headWithinColumns(expanded(line), columns - 7)}`)}`)];
}

function queueRows(queue: readonly QueuedMessage[], { columns, style }: Draw): string[] {
  const shown = queue.slice(0, QUEUE_ROWS);
  const rows = shown.map(({ kind, mode, text }) => {
    const when = kind === 'steer' && mode === 'interrupt_immediate' ? 'interrupt' : kind;
    const head = `  ↳ ${when} queued: `;
    return style.cyan(
      `${head}${headWithinColumns(`“${expanded(firstLine(text))}”`, Math.max(8, columns - columnsOf(head)))}`,
    );
  });
  const more = queue.length - shown.length;
  return more > 0 ? [...rows, style.cyan(`  ↳ and ${more} more: /messages lists them`)] : rows;
}

function approvalRows({ approvals, composer }: ViewState, { columns, style, hasKeyboard }: Draw): string[] {
  const [first] = approvals;
  if (first === undefined || !hasKeyboard || composer.kind === 'args') return [];
  const more = approvals.length > 1 ? ` (1 of ${approvals.length}; Tab: the next)` : '';
  const question = `  ? allow ${expanded(printable(first.tool))} ${expanded(callSubject(first.args, first.summary))}`;
  return [
    `${style.yellow(headWithinColumns(question, Math.max(12, columns - columnsOf(more))))}${style.dim(more)}`,
    style.dim(
      headWithinColumns('    y allow · a always in this session · n deny · e edit arguments — then Enter', columns),
    ),
  ];
}

interface TypedRows {
  readonly rows: readonly string[];
  readonly cursor: { readonly row: number; readonly column: number };
}

function composerRows(state: ViewState, { columns, style, question, startsRuns }: Draw, most: number): TypedRows {
  if (state.isLeaving) {
    const rows = wrapStyled(style.yellow(question), columns).slice(0, most);
    return { rows, cursor: { row: rows.length - 1, column: Math.min(columns, columnsOf(rows.at(-1) ?? '')) } };
  }
  const { composer } = state;
  const label = `${labelOf(state, startsRuns)} › `;
  const width = columns - columnsOf(label);
  const laid = layOut(composer, Math.max(8, width));
  // The rows around the cursor, if not all fit.
  const from = Math.max(0, Math.min(laid.cursor.row - most + 1, laid.lines.length - most));
  const indent = ' '.repeat(columnsOf(label));
  const isEmpty = laid.lines.length === 1 && laid.lines[0] === '';
  const paint = composer.kind === 'steer' ? style.cyan : style.yellow;
  const rows = laid.lines
    .slice(from, from + most)
    .map((line, index) => `${index + from === 0 ? paint(label) : indent}${line}`);
  if (isEmpty)
    rows[0] = `${paint(label)}${style.dim(headWithinColumns(hintOf(state, startsRuns), Math.max(1, width - 1)))}`;
  return { rows, cursor: { row: laid.cursor.row - from, column: columnsOf(label) + laid.cursor.column } };
}

function labelOf({ composer, stopReason, sessionId }: ViewState, startsRuns: boolean): string {
  if (composer.kind === 'args') return 'arguments';
  if (composer.kind === 'interrupt') return 'interrupt';
  return sessionId === null || (stopReason !== null && startsRuns) ? 'prompt' : 'steer';
}

function hintOf(state: ViewState, startsRuns: boolean): string {
  if (state.composer.kind === 'interrupt') return 'what to do instead, now · Esc: discard';
  if (state.suggestion !== null) return `Enter: ${state.suggestion}`;
  if (state.sessionId === null) return 'the first prompt · Ctrl-D: leave';
  if (state.stopReason !== null && startsRuns) return 'the next prompt · Ctrl-D: leave';
  return 'Esc: interrupt · Ctrl-O: unfold · Ctrl-C: leave · /help';
}

/** Wraps the typed text to a width. @returns the lines, and the position of the cursor in them. */
function layOut(composer: Composer, width: number): { lines: string[]; cursor: { row: number; column: number } } {
  const lines = [''];
  let used = 0;
  let cursor = { row: 0, column: 0 };
  const place = (text: string) => {
    for (const grapheme of graphemesOf(text.replaceAll('\t', '    '))) {
      const columns = columnsOf(grapheme);
      if (grapheme === '\n' || used + columns > width) {
        lines.push('');
        used = 0;
      }
      if (grapheme === '\n') continue;
      lines[lines.length - 1] += grapheme;
      used += columns;
    }
  };
  place(composer.before);
  // After a full row the cursor is in the next one.
  if (used >= width) {
    lines.push('');
    used = 0;
  }
  cursor = { row: lines.length - 1, column: used };
  place(composer.after);
  return { lines, cursor };
}

/** State, turn, tokens, cost, queue, approvals, session and model. On a narrow terminal, the last ones are left out. */
function statusRow(state: ViewState, { columns, nowMs, style }: Draw): string | null {
  const { phase, stopReason, usage, costUsd, queue, approvals, turn, model, sessionId } = state;
  if (phase === null) return sessionId === null ? null : style.dim(headWithinColumns('  connecting', columns));
  const busy = isBusy(state);
  const elapsed = busy ? ` ${liveDuration(Math.max(0, nowMs - state.phaseSinceMs))}` : '';
  const label = stopReason === null ? `${PHASES[phase] ?? phase}${elapsed}` : `ended (${stopReason})`;
  const parts = [
    state.isConnected ? null : 'reconnecting',
    `${busy ? spinner(nowMs) : stopReason === null ? '‖' : '●'} ${label}`,
    turn > 0 ? `turn ${turn}` : null,
    usage.inputTokens + usage.outputTokens === 0
      ? null
      : `${compact(usage.inputTokens)} in, ${compact(usage.outputTokens)} out`,
    costUsd === null ? null : dollars(costUsd),
    queue.length === 0 ? null : `${queue.length} queued`,
    approvals.length === 0 ? null : `${approvals.length} to approve`,
    sessionId,
    model,
  ].filter((part) => part !== null);
  let line = parts[0] ?? '';
  for (const part of parts.slice(1)) {
    const longer = `${line} · ${part}`;
    if (columnsOf(longer) > columns) break;
    line = longer;
  }
  const shown = headWithinColumns(line, columns);
  return state.isConnected ? style.dim(shown) : style.yellow(shown);
}

/** A short number: `850`, `12.3k`, `1.2M`. */
function compact(count: number): string {
  if (count < 1_000) return String(count);
  return count < 1_000_000 ? `${(count / 1_000).toFixed(1)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

/** Whole seconds below one minute, because tenths change too fast to read. */
function liveDuration(ms: number): string {
  return ms < 60_000 ? `${Math.floor(ms / 1_000)} s` : duration(ms);
}

function spinner(nowMs: number): string {
  return SPINNER[Math.floor(nowMs / SPINNER_MS) % SPINNER.length] ?? '';
}

function expanded(text: string): string {
  return text.replaceAll('\t', '    ').replaceAll('\n', '⏎');
}
