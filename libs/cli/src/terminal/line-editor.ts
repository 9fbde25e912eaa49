/** One line being typed: keys in, what is to be done out. Draws nothing. */
import { cutGraphemes } from '@coxswain/protocol';

/** A key as Node's readline tells it. */
export interface Key {
  readonly name?: string | undefined;
  readonly sequence?: string | undefined;
  readonly ctrl?: boolean | undefined;
  readonly meta?: boolean | undefined;
}

/** What a typed line will be sent as. */
export type LineKind = 'steer' | 'interrupt';

/** What a key led to. */
export type KeyResult =
  | { readonly type: 'none' | 'edited' | 'ctrl_c' }
  | { readonly type: 'submitted'; readonly text: string; readonly kind: LineKind };

const ESCAPE = '\u001b';
/** What a person calls a character, however many code points it is made of. */
/** Created at first use: loading the segmentation rules takes 10 ms. */
let segmenter: Intl.Segmenter | undefined;
/** What is typed at most; a longer paste is cut. */
const LINE_MAX_CHARS = 64 * 1024;

/** The line. */
export class LineEditor {
  /** What stands before the cursor, and behind it. */
  #before = '';
  #after = '';
  #kind: LineKind = 'steer';
  #pasting = false;

  get text(): string {
    return this.#before + this.#after;
  }

  /** The part of the text that stands behind the cursor. */
  get after(): string {
    return this.#after;
  }

  get kind(): LineKind {
    return this.#kind;
  }

  /** Whether there is something to show: a text, or Esc was pressed and a text is awaited. */
  get open(): boolean {
    return this.text !== '' || this.#kind === 'interrupt';
  }

  /** Takes one key. */
  key(text: string | undefined, key: Key): KeyResult {
    if (key.name === 'paste-start' || key.name === 'paste-end') {
      this.#pasting = key.name === 'paste-start';
      return { type: 'none' };
    }
    if (key.ctrl && key.name === 'c') return { type: 'ctrl_c' };
    if (key.name === 'return' || key.name === 'enter') {
      // A pasted text of several lines is one message.
      return this.#pasting ? this.#insert('\n') : this.#submit();
    }
    if (key.name === 'escape') return this.#escape();
    const edited = this.#correct(key);
    if (edited) return edited;
    // Who types on at once after Esc is read as holding Alt: both bytes are one key then.
    const [first, second, ...more] = key.meta && !key.ctrl ? [...(key.sequence ?? '')] : [];
    if (first === ESCAPE && second !== undefined && more.length === 0 && !isControl(second)) {
      this.#escape();
      return this.#insert(second);
    }
    if (key.ctrl || key.meta || text === undefined || isControl(text)) return { type: 'none' };
    return this.#insert(text);
  }

  /** Keys that move the cursor or take something away, as shells have them; null for any other. */
  #correct({ name, ctrl, meta }: Key): KeyResult | null {
    const [before, after] = [this.#before, this.#after];
    switch (ctrl ? `ctrl-${name}` : meta ? '' : name) {
      case 'backspace':
      case 'ctrl-h':
        return this.#edit(before.slice(0, before.length - lastOf(before).length), after);
      case 'delete':
        return this.#edit(before, after.slice(firstOf(after).length));
      case 'left':
      case 'ctrl-b':
        return this.#moveTo(before.length - lastOf(before).length);
      case 'right':
      case 'ctrl-f':
        return this.#moveTo(before.length + firstOf(after).length);
      case 'home':
      case 'ctrl-a':
        return this.#moveTo(0);
      case 'end':
      case 'ctrl-e':
        return this.#moveTo(this.text.length);
      case 'ctrl-u':
        return this.#edit('', after);
      case 'ctrl-k':
        return this.#edit(before, '');
      case 'ctrl-w':
        return this.#edit(before.replace(/\S+\s*$/, ''), after);
      default:
        return null;
    }
  }

  #moveTo(place: number): KeyResult {
    const { text } = this;
    return this.#edit(text.slice(0, place), text.slice(place));
  }

  #submit(): KeyResult {
    const submitted = { type: 'submitted', text: this.text, kind: this.#kind } as const;
    this.#edit('', '');
    this.#kind = 'steer';
    return submitted;
  }

  // Esc begins an interruption; with nothing typed, or pressed again, it takes it back.
  #escape(): KeyResult {
    this.#kind = this.#kind === 'interrupt' ? 'steer' : 'interrupt';
    if (this.#kind === 'steer') this.#edit('', '');
    return { type: 'edited' };
  }

  #insert(text: string): KeyResult {
    const room = Math.max(0, LINE_MAX_CHARS - this.text.length);
    return this.#edit(this.#before + cutGraphemes(text, room), this.#after);
  }

  #edit(before: string, after: string): KeyResult {
    this.#before = before;
    this.#after = after;
    return { type: 'edited' };
  }
}

/** The last character of a text. */
function lastOf(text: string): string {
  return charactersOf(text).containing(text.length - 1)?.segment ?? '';
}

/** The first character of a text. */
function firstOf(text: string): string {
  return charactersOf(text).containing(0)?.segment ?? '';
}

function charactersOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter();
  return segmenter.segment(text);
}

function isControl(text: string): boolean {
  const code = text.codePointAt(0) ?? 0;
  return code < 0x20 || (code >= 0x7f && code < 0xa0);
}
