/** Formats lists for people. */
import { printable } from '@coxswain/client';
import { columnsOf } from './columns.ts';

/**
 * Rows in columns, each as wide as its widest cell. Cells are plain text: characters that control a terminal are
 * removed, and line breaks are marked.
 */
export function table(given: readonly (readonly string[])[]): string {
  const rows = given.map((row) => row.map((cell) => printable(cell).replaceAll('\n', ' ⏎ ')));
  const widths: number[] = [];
  for (const row of rows) for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, columnsOf(cell));
  return rows
    .map((row) =>
      row
        .map((cell, i) => (i === row.length - 1 ? cell : cell + ' '.repeat((widths[i] as number) - columnsOf(cell))))
        .join('  ')
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('');
}

/** `12 s ago`, `3 h ago`. */
export function ago(at: string, nowMs = Date.now()): string {
  const seconds = Math.max(0, Math.round((nowMs - Date.parse(at)) / 1_000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}
