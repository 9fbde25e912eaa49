/**
 * The bottom of a terminal. Finished rows are written above the live rows and become scrollback; the live rows are
 * redrawn. Each update is one write, which terminals with synchronized output show at once.
 */
import { columnsOf } from '../terminal/mod.ts';
import type { Frame } from './view-frame.ts';

/** The output of a region. */
export interface RegionOutput {
  write(text: string): unknown;
  readonly columns?: number | undefined;
}

const BEGIN_UPDATE = '\u001b[?2026h\u001b[?25l';
const END_UPDATE = '\u001b[?2026l';
const SHOW_CURSOR = '\u001b[?25h';
/**
 * Clears the whole line. After a partial clear, some terminals keep the length of the line, and wrap it when the window
 * shrinks.
 */
const ERASE_LINE = '\u001b[2K';
const TO_END_OF_SCREEN = '\u001b[J';
const NOTHING: Frame = { rows: [], cursor: null };

/** Draws live rows below finished ones. */
export class LiveRegion {
  readonly #out: RegionOutput;
  #drawn: Frame = NOTHING;
  /** The row of the region with the cursor. */
  #at = 0;

  constructor(out: RegionOutput) {
    this.#out = out;
  }

  /** Writes finished rows, and draws the live rows below them. */
  update(finished: readonly string[], frame: Frame): void {
    if (finished.length === 0 && isSame(frame, this.#drawn)) return;
    const rows = [...finished, ...frame.rows].map((row) => `${ERASE_LINE}${row}`);
    // The live rows start in a new row, even if there are none.
    if (frame.rows.length === 0 && finished.length > 0) rows.push('');
    let text = `${this.#toTop()}${rows.join('\r\n')}${TO_END_OF_SCREEN}`;
    const end = Math.max(0, frame.rows.length - 1);
    this.#at = frame.cursor?.row ?? end;
    if (frame.cursor !== null) {
      const [up, right] = [end - frame.cursor.row, frame.cursor.column];
      text += `${up > 0 ? `\u001b[${up}A` : ''}\r${right > 0 ? `\u001b[${right}C` : ''}`;
    }
    // Also without a keyboard: a stopped or killed process must not leave the terminal without its cursor.
    this.#out.write(`${BEGIN_UPDATE}${text}${SHOW_CURSOR}${END_UPDATE}`);
    this.#drawn = frame;
  }

  /**
   * Removes the live rows. The cursor is then at their start.
   * @param columns the current width, if it changed since the rows were drawn: terminals have wrapped them again.
   */
  clear(columns?: number): void {
    this.#out.write(`${this.#toTop(columns)}${TO_END_OF_SCREEN}`);
    this.#drawn = NOTHING;
    this.#at = 0;
  }

  #toTop(columns?: number): string {
    const above = this.#drawn.rows.slice(0, this.#at);
    const up =
      columns === undefined
        ? above.length
        : above.reduce((total, row) => total + Math.max(1, Math.ceil(columnsOf(row) / columns)), 0) +
          Math.floor((this.#drawn.cursor?.column ?? 0) / columns);
    return `\r${up > 0 ? `\u001b[${up}A` : ''}`;
  }
}

function isSame(a: Frame, b: Frame): boolean {
  return (
    a.rows.length === b.rows.length &&
    a.rows.every((row, index) => row === b.rows[index]) &&
    a.cursor?.row === b.cursor?.row &&
    a.cursor?.column === b.cursor?.column
  );
}
