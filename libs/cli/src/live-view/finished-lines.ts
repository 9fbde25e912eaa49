/** Formats finished output as rows for the scrollback of a terminal. */
import { printable } from '@coxswain/client';
import { childLine, duration, eventLine, type Style, wrapStyled } from '../terminal/mod.ts';
import { argumentLines, callSubject } from './edit-diff.ts';
import { markdownLines } from './markdown-lines.ts';
import type { EndedCall, FinishedItem } from './view-state.ts';

/** The rows of an item. `gap`: whether an empty row separates them from the rows above. */
export interface FinishedRows {
  readonly rows: readonly string[];
  readonly gap: boolean;
}

/** Maximum number of rows of arguments, for a folded and for an unfolded call. */
const FOLDED_ARGUMENT_ROWS = 200;
const UNFOLDED_ARGUMENT_ROWS = 10_000;
const UNFOLDED_OUTPUT_LINES = 200;
const HANG = '    ';

/** Formats an item. @param columns the width to wrap to. */
export function finishedRows(item: FinishedItem, columns: number, style: Style): FinishedRows {
  switch (item.kind) {
    case 'markdown':
      return { rows: markdownLines(item.block.token, columns, style), gap: item.block.gap };
    case 'reasoning': {
      const text = item.text.replace(/^\n+/, '');
      return { rows: wrapStyled(style.dim(style.italic(text)), columns, { first: '  ' }), gap: item.gap };
    }
    case 'event': {
      if (item.event.type === 'prompt_shown') {
        const text = style.bold(printable(item.event.text));
        return { rows: wrapStyled(text, columns, { first: style.bold('› '), rest: '  ' }), gap: true };
      }
      const line = eventLine(item.event, style);
      return { rows: line === null ? [] : hanging(line, columns), gap: item.event.type === 'run_ended' };
    }
    case 'child': {
      const line = childLine(item.event, item.child, style);
      return { rows: line === null ? [] : hanging(line, columns), gap: false };
    }
    case 'notice':
      return { rows: item.text.split('\n').flatMap((line) => noticeRows(line, columns, style[item.tone])), gap: false };
    case 'call':
      return { rows: callRows(item.call, item.unfolded, columns, style), gap: false };
    case 'approval':
      return { rows: approvalRows(item, columns, style), gap: true };
  }
}

/** An indented line is a command to copy. The terminal wraps it, so that it stays one line. */
function noticeRows(line: string, columns: number, paint: (text: string) => string): string[] {
  if (/^ {4}/.test(line)) return [paint(line)];
  const indent = /^ */.exec(line)?.[0] ?? '';
  return wrapStyled(paint(line), columns, { first: '', rest: indent });
}

/** Wraps the lines of `eventLine` with a hanging indent. */
function hanging(text: string, columns: number): string[] {
  return text.split('\n').flatMap((line) => {
    const indent = /^ */.exec(line)?.[0] ?? '';
    return wrapStyled(line, columns, { first: '', rest: `${indent}  ` });
  });
}

/** `✓ run_command npm test · 1.2 s`, followed by the first line of its output. */
function callRows({ event, args, output }: EndedCall, unfolded: boolean, columns: number, style: Style): string[] {
  const { status, durationMs } = event;
  const [tool, result] = [printable(event.tool), printable(event.result)];
  const subject = callSubject(args, event.summary);
  const mark = status === 'ok' ? style.green('✓') : status === 'error' ? style.red('✗') : style.yellow('⊘');
  const statusText =
    status === 'ok' ? '' : `${style.dim(' · ')}${status === 'error' ? style.red('failed') : style.yellow(status)}`;
  const took = durationMs > 0 ? style.dim(` · ${duration(durationMs)}`) : '';
  const head = `  ${mark} ${style.bold(tool)} ${style.dim(subject)}${statusText}${took}`;
  const rows = wrapStyled(head, columns, { first: '', rest: HANG });
  if (unfolded) {
    if (args !== null) rows.push(...argumentLines(args, columns, style, UNFOLDED_ARGUMENT_ROWS));
    return [...rows, ...outputRows(output, columns, style)];
  }
  if (result === '') return rows;
  const more = output.trimEnd().split('\n').length - 1;
  const count = more > 0 ? ` (+${more} ${more === 1 ? 'line' : 'lines'})` : '';
  return [
    ...rows,
    ...wrapStyled(style.dim(`${result}${count}`), columns, { first: `${HANG}${style.dim('└')} `, rest: `${HANG}  ` }),
  ];
}

function outputRows(output: string, columns: number, style: Style): string[] {
  if (output.trim() === '') return [];
  const lines = output.trimEnd().split('\n');
  const shown = lines.slice(0, UNFOLDED_OUTPUT_LINES);
  const rows = shown.flatMap((line) =>
    wrapStyled(style.dim(line), columns, { first: `${HANG}${style.dim('│')} `, anywhere: true }),
  );
  const more = lines.length - shown.length;
  return more > 0 ? [...rows, style.dim(`${HANG}… ${more} more lines; cox session export prints all`)] : rows;
}

/** The call, its question and its arguments. A file edit is shown as a diff. */
function approvalRows(
  { event, child, unfolded }: Extract<FinishedItem, { kind: 'approval' }>,
  columns: number,
  style: Style,
): string[] {
  // The first row is short, because all arguments follow.
  const subject = callSubject(event.args, '');
  const about = subject === '' ? '' : ` ${subject}`;
  const of = child === null ? '' : style.dim(` of ${printable(child.persona)} ${child.id}`);
  const head = `${style.yellow('?')} ${style.bold(printable(event.tool))}${about} ${style.yellow('waits for an approval')} ${style.dim(`(${printable(event.callId)})`)}${of}`;
  const question = event.question === null ? [] : wrapStyled(printable(event.question), columns, { first: HANG });
  const most = unfolded ? UNFOLDED_ARGUMENT_ROWS : FOLDED_ARGUMENT_ROWS;
  return [
    ...wrapStyled(head, columns, { first: '  ', rest: HANG }),
    ...question,
    ...argumentLines(event.args, columns, style, most),
  ];
}
