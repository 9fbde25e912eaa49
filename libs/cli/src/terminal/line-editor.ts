/** One line being typed: keys in, what is to be done out. Draws nothing. */

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
/** What is typed at most; a longer paste is cut. */
const LINE_MAX_CHARS = 64 * 1024;

/** The line. */
export class LineEditor {
  #text = '';
  #kind: LineKind = 'steer';
  #pasting = false;

  get text(): string {
    return this.#text;
  }

  get kind(): LineKind {
    return this.#kind;
  }

  /** Whether there is something to show: a text, or Esc was pressed and a text is awaited. */
  get open(): boolean {
    return this.#text !== '' || this.#kind === 'interrupt';
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
    if (key.name === 'backspace') return this.#edit([...this.#text].slice(0, -1).join(''));
    if (key.ctrl && key.name === 'u') return this.#edit('');
    if (key.ctrl && key.name === 'w') return this.#edit(this.#text.replace(/\S+\s*$/, ''));
    // Who types on at once after Esc is read as holding Alt: both bytes are one key then.
    const [first, second, ...more] = key.meta && !key.ctrl ? [...(key.sequence ?? '')] : [];
    if (first === ESCAPE && second !== undefined && more.length === 0 && !isControl(second)) {
      this.#escape();
      return this.#insert(second);
    }
    if (key.ctrl || key.meta || text === undefined || isControl(text)) return { type: 'none' };
    return this.#insert(text);
  }

  #submit(): KeyResult {
    const submitted = { type: 'submitted', text: this.#text, kind: this.#kind } as const;
    this.#text = '';
    this.#kind = 'steer';
    return submitted;
  }

  // Esc begins an interruption; with nothing typed, or pressed again, it takes it back.
  #escape(): KeyResult {
    this.#kind = this.#kind === 'interrupt' ? 'steer' : 'interrupt';
    if (this.#kind === 'steer') this.#text = '';
    return { type: 'edited' };
  }

  #insert(text: string): KeyResult {
    return this.#edit((this.#text + text).slice(0, LINE_MAX_CHARS));
  }

  #edit(text: string): KeyResult {
    this.#text = text;
    return { type: 'edited' };
  }
}

function isControl(text: string): boolean {
  const code = text.codePointAt(0) ?? 0;
  return code < 0x20 || (code >= 0x7f && code < 0xa0);
}
