/**
 * A terminal's lower edge: text flows, a spinner turns while nothing does, and what is being typed keeps its line.
 * While somebody types, output waits, so that neither writes over the other.
 */
import { columnsOf, headWithinColumns, tailWithinColumns } from './columns.ts';
import type { Style } from './style.ts';

/** Output that waits for the end of the typing. Beyond it, it is written above the typed line. */
const HELD_MAX_CHARS = 256 * 1024;
const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const FRAME_MS = 100;
/** What a label leaves of its line for what is typed. */
const MIN_TYPED_COLUMNS = 8;

/** A line that is being typed. */
export interface Typed {
  readonly label: string;
  readonly text: string;
  /** The end of the text, as far as it stands behind the cursor. */
  readonly after?: string;
}

/** What a screen writes to. */
export interface ScreenOutput {
  write(text: string): unknown;
  readonly columns?: number | undefined;
}

/** The screen. */
export class Screen {
  readonly #out: ScreenOutput;
  readonly #style: Style;
  #atLineStart = true;
  #held = '';
  #typed: Typed | null = null;
  #status: string | null = null;
  #frame = 0;
  #edgeDrawn = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(out: ScreenOutput, style: Style) {
    this.#out = out;
    this.#style = style;
  }

  /** Flowing text. */
  text(text: string): void {
    if (text === '') return;
    if (this.#typed && this.#held.length < HELD_MAX_CHARS) {
      this.#held += text;
      return;
    }
    this.#clearEdge();
    this.#out.write(text);
    this.#atLineStart = text.endsWith('\n');
    this.#drawEdge();
  }

  /** A line of its own. */
  line(text: string): void {
    this.text(`${this.#startsLine() ? '' : '\n'}${text}\n`);
  }

  /** An empty line, where there is not one already. */
  gap(): void {
    if (!this.#startsLine()) this.text('\n');
  }

  /** What is going on while nothing is written; null for nothing. */
  status(label: string | null): void {
    if (label === this.#status) return;
    this.#clearEdge();
    this.#status = label;
    if (label !== null && !this.#timer) {
      this.#timer = setInterval(() => this.#turn(), FRAME_MS);
      this.#timer.unref();
    }
    if (label === null) this.#stopTurning();
    this.#drawEdge();
  }

  /** Shows what is being typed; null when nothing is, whereupon the output that waited is written. */
  typing(typed: Typed | null): void {
    this.#clearEdge();
    if (typed && !this.#typed && !this.#atLineStart) {
      this.#out.write('\n');
      this.#atLineStart = true;
    }
    this.#typed = typed;
    if (!typed && this.#held !== '') {
      const held = this.#held;
      this.#held = '';
      this.text(held);
    }
    this.#drawEdge();
  }

  /** Leaves the terminal as it was found. */
  close(): void {
    this.status(null);
    this.typing(null);
    this.#clearEdge();
    if (!this.#atLineStart) this.#out.write('\n');
    this.#atLineStart = true;
  }

  #startsLine(): boolean {
    return this.#held === '' ? this.#atLineStart : this.#held.endsWith('\n');
  }

  #turn(): void {
    this.#frame = (this.#frame + 1) % FRAMES.length;
    if (!this.#typed && this.#edgeDrawn) {
      this.#clearEdge();
      this.#drawEdge();
    }
  }

  #stopTurning(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #drawEdge(): void {
    if (this.#edgeDrawn || !this.#atLineStart) return;
    // Some terminals say that they have no columns at all, meaning that they do not know.
    const width = Math.max(20, this.#out.columns || 80) - 1;
    if (this.#typed) {
      const { label, text, after = '' } = this.#typed;
      const shownLabel = headWithinColumns(label, width - (text === '' ? 1 : MIN_TYPED_COLUMNS));
      const room = Math.max(4, width - columnsOf(shownLabel) - 1);
      const shown = text.replaceAll('\n', '⏎');
      const before = shown.slice(0, shown.length - after.length);
      const roomBehind = Math.max(Math.floor(room / 2), room - columnsOf(before));
      const behind = headWithinColumns(shown.slice(before.length), roomBehind);
      const ahead = tailWithinColumns(before, room - columnsOf(behind));
      const back = behind === '' ? '' : `\u001b[${columnsOf(behind)}D`;
      this.#out.write(`${this.#style.cyan(shownLabel)} ${ahead}${behind}${back}`);
      this.#edgeDrawn = true;
    } else if (this.#status !== null) {
      this.#out.write(this.#style.dim(`${FRAMES[this.#frame]} ${headWithinColumns(this.#status, width - 2)}`));
      this.#edgeDrawn = true;
    }
  }

  #clearEdge(): void {
    if (!this.#edgeDrawn) return;
    this.#out.write('\r\u001b[K');
    this.#edgeDrawn = false;
  }
}
