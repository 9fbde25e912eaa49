/**
 * Formats blocks of Markdown as rows of a terminal. Their text must be printable: only `style` adds control characters.
 */
import type { Token, Tokens } from 'marked';
import { columnsOf, type Style, wrapStyled } from '../terminal/mod.ts';
import { isApart } from './markdown-stream.ts';

/** The rows of one block, wrapped to `columns`. Deeply nested lists can be wider. */
export function markdownLines(token: Token, columns: number, style: Style): string[] {
  switch (token.type) {
    case 'heading':
      return wrapStyled(style.bold(inline(token.tokens, style)), columns);
    case 'code':
      return codeLines(token as Tokens.Code, columns, style);
    case 'list':
      return listLines(token as Tokens.List, columns, style);
    case 'blockquote':
      return blocksLines(token.tokens ?? [], columns - 2, style).map((line) => `${style.dim('│')} ${line}`);
    case 'table':
      return tableLines(token as Tokens.Table, columns, style);
    case 'hr':
      return [style.dim('─'.repeat(Math.min(columns, 40)))];
    case 'space':
    case 'checkbox':
      return [];
    case 'paragraph':
    case 'text':
      return wrapStyled('tokens' in token && token.tokens ? inline(token.tokens, style) : token.text, columns);
    default:
      // HTML and definitions of links are shown as written.
      return wrapStyled(token.raw.trimEnd(), columns);
  }
}

function blocksLines(tokens: readonly Token[], columns: number, style: Style): string[] {
  const shown = tokens.filter(({ type }) => type !== 'space' && type !== 'checkbox');
  return shown.flatMap((token, index) => {
    const isApart = index > 0 && token.type !== 'list' && shown[index - 1]?.type !== 'text';
    return [...(isApart ? [''] : []), ...markdownLines(token, columns, style)];
  });
}

function inline(tokens: readonly Token[] | undefined, style: Style): string {
  return (tokens ?? []).map((token) => inlineText(token, style)).join('');
}

function inlineText(token: Token, style: Style): string {
  switch (token.type) {
    case 'strong':
      return style.bold(inline(token.tokens, style));
    case 'em':
      return style.italic(inline(token.tokens, style));
    case 'codespan':
      return style.cyan(token.text);
    case 'br':
      return '\n';
    case 'link': {
      const text = inline(token.tokens, style);
      const isAddress = token.text === token.href || `mailto:${token.text}` === token.href;
      return isAddress ? style.underline(text) : `${style.underline(text)} ${style.dim(`(${token.href})`)}`;
    }
    case 'image':
      return `${token.text} ${style.dim(`(${token.href})`)}`;
    case 'text':
    case 'escape':
      return 'tokens' in token && token.tokens ? inline(token.tokens, style) : token.text;
    case 'checkbox':
      return '';
    default:
      // Deleted text keeps its marks too, because some terminals have no style for it.
      return token.raw;
  }
}

const DIFF_LINE: Readonly<Record<string, 'green' | 'red'>> = { '+': 'green', '-': 'red' };

function codeLines({ text, lang }: Tokens.Code, columns: number, style: Style): string[] {
  // The parser keeps the last line break of a text that ends with an empty line.
  return text
    .replace(/\n$/, '')
    .split('\n')
    .flatMap((line) => {
      const colour = lang === 'diff' ? DIFF_LINE[line.charAt(0)] : 'cyan';
      return wrapStyled(colour === undefined ? line : style[colour](line), columns, { first: '  ', anywhere: true });
    });
}

function listLines({ items, ordered, start }: Tokens.List, columns: number, style: Style): string[] {
  return items.flatMap((item, index) => {
    const sign = ordered ? `${Number(start) + index}. ` : '• ';
    const box = item.task ? (item.checked ? '[x] ' : '[ ] ') : '';
    const mark = `${sign}${box}`;
    const rows = blocksLines(item.tokens, Math.max(8, columns - columnsOf(mark)), style);
    const indent = ' '.repeat(columnsOf(mark));
    const lines = (rows.length === 0 ? [''] : rows).map((row, at) =>
      at === 0 ? `${mark}${row}` : row === '' ? '' : `${indent}${row}`,
    );
    const above = items[index - 1];
    return above !== undefined && isApart(above) ? ['', ...lines] : lines;
  });
}

/** The minimum width of a column, in terminal columns, so that a long word leaves room for the others. */
const CELL_MIN_COLUMNS = 6;
const BETWEEN = ' │ ';

function tableLines({ header, rows, align }: Tokens.Table, columns: number, style: Style): string[] {
  const texts = [header, ...rows].map((row) => row.map(({ tokens }) => inline(tokens, style)));
  const widths = header.map((_, at) => Math.max(1, ...texts.map((row) => columnsOf(row[at] ?? ''))));
  let over = sum(widths) + BETWEEN.length * (widths.length - 1) - columns;
  // Reduces the widest columns first.
  while (over > 0) {
    const widest = widths.indexOf(Math.max(...widths));
    const width = widths[widest] ?? 0;
    if (width <= CELL_MIN_COLUMNS) break;
    widths[widest] = width - 1;
    over -= 1;
  }
  // Too many columns for this width: each row becomes a line of text.
  if (over > 0) return texts.flatMap((row) => wrapStyled(row.join(' | '), columns));
  const between = style.dim(BETWEEN);
  const rule = style.dim(widths.map((width) => '─'.repeat(width)).join('─┼─'));
  return texts.flatMap((row, index) => {
    const cells = widths.map((width, at) =>
      wrapStyled(index === 0 ? style.bold(row[at] ?? '') : (row[at] ?? ''), width),
    );
    const height = Math.max(...cells.map(({ length }) => length));
    const lines = Array.from({ length: height }, (_, line) =>
      cells
        .map((cell, at) => padded(cell[line] ?? '', widths[at] ?? 0, align[at] ?? null))
        .join(between)
        .trimEnd(),
    );
    return index === 0 ? [...lines, rule] : lines;
  });
}

function padded(text: string, width: number, align: 'center' | 'left' | 'right' | null): string {
  const room = Math.max(0, width - columnsOf(text));
  const before = align === 'right' ? room : align === 'center' ? Math.floor(room / 2) : 0;
  return `${' '.repeat(before)}${text}${' '.repeat(room - before)}`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
