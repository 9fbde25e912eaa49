/**
 * Wraps styled text into rows of a terminal. A row keeps to the requested columns if these leave room for the prefix
 * and four columns. It never splits a grapheme, and it carries its own styles: each row can be written, moved or
 * dropped alone.
 */
import { columnsOf } from './columns.ts';

/** How to wrap a text. */
export interface WrapOptions {
  /** The prefix of the first row, and of each further one. Both count as columns. */
  readonly first?: string;
  readonly rest?: string;
  /** Breaks at the last column instead of between words. For code, whose blanks are significant. */
  readonly anywhere?: boolean;
}

interface Cell {
  readonly text: string;
  readonly columns: number;
  /** The parameters of the SGR sequence that draws it, `1;36`; empty for plain text. */
  readonly sgr: string;
}

/** The SGR parameters that each reset ends: bold and dim share one reset, all foreground colours another. */
const ENDS: Readonly<Record<string, RegExp>> = { 22: /^[12]$/, 23: /^3$/, 24: /^4$/, 39: /^(3[0-7]|9[0-7])$/ };
const TAB = '    ';
/** The minimum number of columns for the text, next to a prefix on any terminal. */
const TEXT_MIN_COLUMNS = 4;

/** Created at first use: loading the segmentation rules takes 10 ms. */
let segmenter: Intl.Segmenter | undefined;

/**
 * Wraps a text without control characters except line breaks, tabs and the SGR sequences of `Style`.
 * @param columns the width of a row, prefix included.
 */
export function wrapStyled(text: string, columns: number, options: WrapOptions = {}): string[] {
  const { first = '', rest = first, anywhere = false } = options;
  const rows: string[] = [];
  const sgr: string[] = [];
  for (const line of text.replaceAll('\t', TAB).split('\n')) {
    let cells = cellsOf(line, sgr);
    do {
      const prefix = rows.length === 0 ? first : rest;
      const room = Math.max(TEXT_MIN_COLUMNS, columns - columnsOf(prefix));
      const end = rowEnd(cells, room, anywhere);
      rows.push(`${prefix}${painted(cells.slice(0, end))}`);
      cells = cells.slice(anywhere ? end : skipBlank(cells, end));
    } while (cells.length > 0);
  }
  return rows;
}

/** The graphemes of a text: its characters as people count them. */
export function graphemesOf(text: string): string[] {
  // In plain ASCII, each unit is one character. Segmentation takes a hundred times as long.
  if (/^[\u0020-\u007e]*$/.test(text)) return text.split('');
  segmenter ??= new Intl.Segmenter();
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

/** @param open the active SGR parameters, which continue on the next line. */
function cellsOf(line: string, open: string[]): Cell[] {
  const cells: Cell[] = [];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the sequences of Style
  for (const [piece, codes] of line.matchAll(/\u001b\[([\d;]*)m|[^\u001b]+/g)) {
    if (codes !== undefined) {
      apply(codes, open);
      continue;
    }
    const sgr = open.join(';');
    for (const text of graphemesOf(piece)) cells.push({ text, columns: columnsOf(text), sgr });
  }
  return cells;
}

function apply(codes: string, open: string[]): void {
  for (const code of codes.split(';')) {
    const ended = ENDS[code];
    if (ended === undefined) open.push(code);
    else open.splice(0, open.length, ...open.filter((one) => !ended.test(one)));
  }
}

/** The number of cells in a row. It is at least one, so that the wrapping ends. */
function rowEnd(cells: readonly Cell[], room: number, anywhere: boolean): number {
  let used = 0;
  let lastBreak = 0;
  for (const [index, cell] of cells.entries()) {
    if (used + cell.columns > room) return lastBreak > 0 && !anywhere ? lastBreak : Math.max(1, index);
    used += cell.columns;
    // Breaks between words, and after a wide character: Chinese and Japanese have no blanks.
    if (cell.columns > 1 || cells[index + 1]?.text === ' ') lastBreak = index + 1;
  }
  return cells.length;
}

/** Skips the blanks at a break, which belong to neither row. */
function skipBlank(cells: readonly Cell[], end: number): number {
  let at = end;
  while (at < cells.length && cells[at]?.text === ' ') at += 1;
  return at;
}

function painted(cells: readonly Cell[]): string {
  let row = '';
  let sgr = '';
  for (const cell of cells) {
    if (cell.sgr !== sgr) {
      if (sgr !== '') row += '\u001b[0m';
      if (cell.sgr !== '') row += `\u001b[${cell.sgr}m`;
      sgr = cell.sgr;
    }
    row += cell.text;
  }
  return sgr === '' ? row : `${row}\u001b[0m`;
}
