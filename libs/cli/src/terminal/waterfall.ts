/** Draws spans below each other: their hierarchy, their times and their durations. */
import { printable } from '@coxswain/client';
import type { EndedSpan } from '@coxswain/protocol';
import { columnsOf, headWithinColumns } from './columns.ts';
import type { Style } from './style.ts';

/** A span with its children, the earliest first. */
export interface SpanTree {
  readonly span: EndedSpan;
  readonly below: readonly SpanTree[];
}

/** Bars are left out if they have fewer columns than this. */
const BAR_MIN_COLUMNS = 10;
const LABEL_MAX_PART = 0.5;
const TIME_COLUMNS = 8;
const NOTE_MAX_COLUMNS = 28;
/** A narrower terminal has space only for names and times. */
const NOTES_FROM_COLUMNS = 40;

/** Builds the trees below the given top spans. */
export function spanTrees(spans: readonly EndedSpan[], isTop: (span: EndedSpan) => boolean): readonly SpanTree[] {
  const below = new Map<string, EndedSpan[]>();
  for (const span of spans) {
    const key = span.parent?.spanId ?? '';
    below.set(key, [...(below.get(key) ?? []), span]);
  }
  const byStart = (a: EndedSpan, b: EndedSpan) => a.startMs - b.startMs || a.endMs - b.endMs;
  const treeOf = (span: EndedSpan, above: ReadonlySet<string>): SpanTree => {
    const { spanId } = span.context;
    const within = new Set([...above, spanId]);
    const children = (below.get(spanId) ?? []).filter(({ context }) => !within.has(context.spanId)).sort(byStart);
    return { span, below: children.map((child) => treeOf(child, within)) };
  };
  return spans
    .filter(isTop)
    .sort(byStart)
    .map((span) => treeOf(span, new Set()));
}

/**
 * Formats one tree as lines of at most `columns` columns, each with a line break. A very narrow terminal gets longer
 * lines.
 */
export function waterfall(tree: SpanTree, columns: number, style: Style): string {
  const rows = rowsOf(withClaims(tree), '', '');
  const notes = rows.map(({ span }) => headWithinColumns(noteOf(span), NOTE_MAX_COLUMNS));
  const noteColumns = Math.min(
    Math.max(...notes.map(columnsOf)),
    columns < NOTES_FROM_COLUMNS ? 0 : Math.floor(columns / 4),
  );
  const labelColumns = Math.min(
    Math.max(...rows.map(({ label }) => columnsOf(label))),
    Math.max(8, Math.floor(columns * LABEL_MAX_PART)),
  );
  const barColumns = columns - labelColumns - TIME_COLUMNS - noteColumns - 4;
  const fromMs = Math.min(...rows.map(({ span }) => span.startMs));
  const untilMs = Math.max(...rows.map(({ span }) => span.endMs));
  return rows
    .map(({ label, span }, index) => {
      const paint = colourOf(span, style);
      const shown = headWithinColumns(label, labelColumns);
      const name = paint(shown) + ' '.repeat(Math.max(0, labelColumns - columnsOf(shown)));
      const bar = barColumns < BAR_MIN_COLUMNS ? '' : `  ${barOf(span, fromMs, untilMs, barColumns, paint)}`;
      const note = noteColumns === 0 ? '' : headWithinColumns(notes[index] ?? '', noteColumns);
      const took = isClaim(span) ? '' : durationText(span.endMs - span.startMs);
      const time = took.padStart(TIME_COLUMNS);
      return `${name}${bar} ${time} ${span.error ? style.red(note) : style.dim(note)}`.trimEnd();
    })
    .map((line) => `${line}\n`)
    .join('');
}

/** The same tree, with a row for each time at which a host claimed the session while the span was open. */
function withClaims({ span, below }: SpanTree): SpanTree {
  const claims = span.moments
    .filter(({ name }) => name === 'owned')
    .map(({ atMs, attributes }): SpanTree => {
      const name = `${CLAIMED}, epoch ${String(attributes['coxswain.epoch'])}`;
      return { span: { ...span, name, startMs: atMs, endMs: atMs, error: null, attributes, moments: [] }, below: [] };
    });
  const rows = [...claims, ...below.map(withClaims)];
  return { span, below: rows.sort((a, b) => a.span.startMs - b.span.startMs) };
}

const CLAIMED = 'claimed by a host';
const isClaim = ({ name }: EndedSpan) => name.startsWith(`${CLAIMED}, `);

function rowsOf({ span, below }: SpanTree, lead: string, deeper: string): { label: string; span: EndedSpan }[] {
  const last = below.length - 1;
  return [
    { label: `${lead}${printable(span.name)}`, span },
    ...below.flatMap((child, at) =>
      rowsOf(child, `${deeper}${at === last ? '└ ' : '├ '}`, `${deeper}${at === last ? '  ' : '│ '}`),
    ),
  ];
}

function barOf(
  span: EndedSpan,
  fromMs: number,
  untilMs: number,
  columns: number,
  paint: (text: string) => string,
): string {
  const { startMs, endMs, attributes } = span;
  const perColumn = Math.max(1, untilMs - fromMs) / columns;
  const start = Math.min(columns - 1, Math.floor((startMs - fromMs) / perColumn));
  const end = Math.max(start + 1, Math.min(columns, Math.ceil((endMs - fromMs) / perColumn)));
  const isOpen = attributes['coxswain.open'] === true;
  const drawn = isClaim(span) ? '▲' : '━'.repeat(end - start - (isOpen ? 1 : 0)) + (isOpen ? '╌' : '');
  return ' '.repeat(start) + paint(drawn) + ' '.repeat(columns - end);
}

/** `0 ms`, `340 ms`, `2.4 s`, `3 m 20 s`, `2 h 05 m` */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} m ${String(seconds % 60).padStart(2, '0')} s`;
  return `${Math.floor(seconds / 3_600)} h ${String(Math.floor((seconds % 3_600) / 60)).padStart(2, '0')} m`;
}

/** The most important fact about a span besides its time. */
function noteOf(span: EndedSpan): string {
  const { error, attributes } = span;
  if (error) return error.type;
  if (isClaim(span)) return printable(String(attributes['coxswain.host']));
  if (attributes['coxswain.open'] === true) return 'in progress';
  const { 'gen_ai.usage.input_tokens': input, 'gen_ai.usage.output_tokens': output } = attributes;
  const operation = attributes['gen_ai.operation.name'];
  const isUsageShown = input !== undefined && (operation === 'chat' || operation === 'invoke_agent');
  const usage = isUsageShown ? [`${String(input)} in, ${String(output)} out`] : [];
  const decision = attributes['coxswain.approval.decision'];
  if (decision !== undefined) return String(decision);
  return [...endOf(attributes), ...usage].join(', ');
}

/** The end of a span if it is not a usual one. */
function endOf(attributes: EndedSpan['attributes']): readonly string[] {
  const { 'coxswain.stop_reason': reason, 'coxswain.status': status } = attributes;
  const ended = String(reason ?? status ?? '');
  return USUAL_ENDS.has(ended) ? [] : [ended];
}

const USUAL_ENDS: ReadonlySet<string> = new Set([
  '',
  'ok',
  'complete',
  'answered',
  'end_turn',
  'terminated',
  'stop_condition',
]);

function colourOf(span: EndedSpan, style: Style): (text: string) => string {
  const { error, name, attributes } = span;
  if (error) return style.red;
  if (isClaim(span)) return style.yellow;
  const operation = attributes['gen_ai.operation.name'];
  if (operation === 'invoke_agent') return style.bold;
  if (operation === 'chat') return style.cyan;
  if (operation === 'execute_tool') return style.green;
  return /^(hook|approval|suspended)\b/.test(name) ? style.yellow : style.dim;
}
