/** Texts within a width on a terminal, where a character takes two columns, one or none. */
import fastStringWidth from 'fast-string-width';

/** How many columns a text takes. */
export function columnsOf(text: string): number {
  return fastStringWidth(text);
}

/** Created at first use: loading the segmentation rules takes 10 ms. */
let segmenter: Intl.Segmenter | undefined;

/** The beginning of a text, at most so many columns; what is cut ends in `…`. */
export function headWithinColumns(text: string, columns: number): string {
  return within(text, columns, (characters, end) => `${characters.join('')}${end}`);
}

/** The end of a text, at most so many columns: where one types. What is cut begins with `…`. */
export function tailWithinColumns(text: string, columns: number): string {
  return within(text, columns, (characters, end) => `${end}${characters.reverse().join('')}`, true);
}

function within(
  text: string,
  columns: number,
  join: (characters: string[], end: string) => string,
  fromEnd = false,
): string {
  // No line of a terminal holds more characters, marks on them included; what is further away is not looked at.
  const near =
    text.length <= MAX_LOOKED_AT ? text : fromEnd ? text.slice(-MAX_LOOKED_AT) : text.slice(0, MAX_LOOKED_AT);
  if (near.length === text.length && columnsOf(text) <= columns) return text;
  segmenter ??= new Intl.Segmenter();
  const characters = Array.from(segmenter.segment(near), ({ segment }) => segment);
  if (fromEnd) characters.reverse();
  const kept: string[] = [];
  let room = columns - 1;
  for (const character of characters) {
    room -= columnsOf(character);
    if (room < 0) break;
    kept.push(character);
  }
  return join(kept, '…');
}

const MAX_LOOKED_AT = 4_096;
