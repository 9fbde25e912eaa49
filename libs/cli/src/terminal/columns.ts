/** Measures and cuts texts in columns of a terminal: a character takes two columns, one or none. */
import fastStringWidth from 'fast-string-width';

/** The width of a text, in columns. */
export function columnsOf(text: string): number {
  return fastStringWidth(text);
}

/** Created at first use: loading the segmentation rules takes 10 ms. */
let segmenter: Intl.Segmenter | undefined;

/** The start of a text in at most `columns` columns. A cut text ends in `…`. */
export function headWithinColumns(text: string, columns: number): string {
  // Limits the work for a long text: lines have fewer characters, combining marks included.
  const near = text.slice(0, LINE_MAX_CHARS);
  if (near.length === text.length && columnsOf(text) <= columns) return text;
  segmenter ??= new Intl.Segmenter();
  const kept: string[] = [];
  let room = columns - 1;
  for (const { segment } of segmenter.segment(near)) {
    room -= columnsOf(segment);
    if (room < 0) break;
    kept.push(segment);
  }
  return `${kept.join('')}…`;
}

const LINE_MAX_CHARS = 4_096;
