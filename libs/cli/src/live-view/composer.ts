/**
 * The text that a person types: several lines, a cursor, and earlier messages. Pure: a state and a key give the next
 * state.
 */
import { printable } from '@coxswain/client';
import { cutGraphemes } from '@coxswain/protocol';
import { columnsOf, graphemesOf } from '../terminal/mod.ts';

/** A key as Node's readline reports it. */
export interface Key {
  readonly name?: string | undefined;
  readonly sequence?: string | undefined;
  readonly ctrl?: boolean | undefined;
  readonly meta?: boolean | undefined;
  readonly shift?: boolean | undefined;
}

/** How a typed line is sent. */
export type LineKind = 'steer' | 'interrupt';

/** The typed text, and the messages that were sent before. */
export interface Composer {
  readonly before: string;
  readonly after: string;
  /** `args`: the text is the edited arguments of a call that waits for approval. */
  readonly kind: LineKind | 'args';
  readonly isPasting: boolean;
  /** Oldest first. */
  readonly history: readonly string[];
  /** The index of the displayed message in the history; null for the typed text. */
  readonly at: number | null;
  /** The text that was typed before the history was opened. */
  readonly draft: string;
}

/** A composer without text. */
export const EMPTY_COMPOSER: Composer = {
  before: '',
  after: '',
  kind: 'steer',
  isPasting: false,
  history: [],
  at: null,
  draft: '',
};

/** The maximum length of the text. Further input is cut. */
const TEXT_MAX_CHARS = 64 * 1024;
const HISTORY_MAX = 100;
const ESCAPE = '\u001b';
/** Shift-Enter, in terminals that report it (kitty's protocol, and the other encoding of xterm). */
const SHIFT_ENTER: ReadonlySet<string> = new Set(['\u001b[13;2u', '\u001b[27;2;13~']);

/** The result of a key. */
export type ComposerResult =
  | { readonly type: 'none' }
  | { readonly type: 'edited'; readonly composer: Composer }
  | { readonly type: 'submitted'; readonly composer: Composer; readonly text: string };

/** The whole text. */
export function textOf({ before, after }: Composer): string {
  return before + after;
}

/** The same composer with another text, the cursor at its end. */
export function withText(composer: Composer, text: string, kind: Composer['kind'] = composer.kind): Composer {
  return { ...composer, before: text, after: '', kind, at: null, draft: '' };
}

/** Adds a sent message to the history. The same one twice in a row is kept once. */
export function remember(composer: Composer, text: string): Composer {
  if (text.trim() === '' || composer.history.at(-1) === text) return composer;
  return { ...composer, history: [...composer.history, text].slice(-HISTORY_MAX) };
}

/** Processes one key. */
export function composerKey(composer: Composer, text: string | undefined, key: Key): ComposerResult {
  if (key.name === 'paste-start' || key.name === 'paste-end')
    return edited({ ...composer, isPasting: key.name === 'paste-start' });
  const isEnter = key.name === 'return' || key.name === 'enter';
  // A pasted text of several lines is one message, and its keys are not commands.
  if (composer.isPasting) return insert(composer, isEnter ? '\n' : (text ?? ''));
  if (SHIFT_ENTER.has(key.sequence ?? '')) return insert(composer, '\n');
  if (isEnter) return enter(composer, key);
  if (key.name === 'escape') return edited(withEscape(composer));
  const moved = correct(composer, key);
  if (moved !== null) return moved;
  // A key directly after Esc looks like Alt: both bytes arrive as one key.
  const [first, second, ...more] = key.meta && !key.ctrl ? [...(key.sequence ?? '')] : [];
  if (first === ESCAPE && second !== undefined && more.length === 0) return insert(withEscape(composer), second);
  if (key.ctrl || key.meta || text === undefined) return { type: 'none' };
  return insert(composer, text);
}

/** Enter sends the text. With Alt or Shift, as Ctrl-J, or after a backslash, it inserts a line break. */
function enter(composer: Composer, { name, meta, shift }: Key): ComposerResult {
  if (meta || shift || name === 'enter') return insert(composer, '\n');
  if (composer.before.endsWith('\\')) return insert({ ...composer, before: composer.before.slice(0, -1) }, '\n');
  return { type: 'submitted', text: textOf(composer), composer: withText(composer, '', 'steer') };
}

/** Esc starts an interrupt. A second Esc discards it. Esc also discards edited arguments. */
function withEscape(composer: Composer): Composer {
  return composer.kind === 'steer' ? { ...composer, kind: 'interrupt' } : withText(composer, '', 'steer');
}

/** Keys that move the cursor or remove text, as in a shell; null for any other key. */
function correct(composer: Composer, { name, ctrl, meta }: Key): ComposerResult | null {
  const { before, after } = composer;
  const line = before.slice(before.lastIndexOf('\n') + 1);
  const restOfLine = after.split('\n', 1)[0] ?? '';
  const to = (at: number): ComposerResult => edited(moveTo(composer, at));
  switch (ctrl ? `ctrl-${name}` : meta ? `alt-${name}` : name) {
    case 'backspace':
    case 'ctrl-h':
      return edited({ ...composer, before: before.slice(0, before.length - lastOf(before).length) });
    case 'delete':
      return edited({ ...composer, after: after.slice(firstOf(after).length) });
    case 'left':
    case 'ctrl-b':
      return to(before.length - lastOf(before).length);
    case 'right':
    case 'ctrl-f':
      return to(before.length + firstOf(after).length);
    case 'ctrl-left':
    case 'alt-left':
      return to(before.length - (/\S*\s*$/.exec(before)?.[0].length ?? 0));
    case 'ctrl-right':
    case 'alt-right':
      return to(before.length + (/^\s*\S*/.exec(after)?.[0].length ?? 0));
    case 'home':
    case 'ctrl-a':
      return to(before.length - line.length);
    case 'end':
    case 'ctrl-e':
      return to(before.length + restOfLine.length);
    case 'ctrl-u':
      return edited({ ...composer, before: before.slice(0, before.length - line.length) });
    case 'ctrl-k':
      return edited({ ...composer, after: after.slice(restOfLine.length) });
    case 'ctrl-w':
      return edited({ ...composer, before: before.replace(/\S+\s*$/, '') });
    case 'up':
    case 'ctrl-p':
      return edited(up(composer, line));
    case 'down':
    case 'ctrl-n':
      return edited(down(composer, line, restOfLine));
    default:
      return null;
  }
}

/** Moves to the line above; from the first line, to the previous message. */
function up(composer: Composer, line: string): Composer {
  const start = composer.before.length - line.length;
  if (start === 0) return recall(composer, (composer.at ?? composer.history.length) - 1);
  const above = composer.before.slice(0, start - 1);
  const aboveStart = above.lastIndexOf('\n') + 1;
  return moveTo(composer, aboveStart + atColumn(above.slice(aboveStart), columnsOf(line)));
}

/** Moves to the line below; from the last line, to the next message. */
function down(composer: Composer, line: string, restOfLine: string): Composer {
  const below = composer.after.slice(restOfLine.length + 1);
  if (composer.after.length === restOfLine.length)
    return composer.at === null ? composer : recall(composer, composer.at + 1);
  const start = composer.before.length + restOfLine.length + 1;
  return moveTo(composer, start + atColumn(below.split('\n', 1)[0] ?? '', columnsOf(line)));
}

/** Shows a message of the history; after the last one, the draft. */
function recall(composer: Composer, at: number): Composer {
  const { history } = composer;
  if (composer.kind === 'args' || at < 0) return composer;
  const draft = composer.at === null ? textOf(composer) : composer.draft;
  const recalled = history[at];
  if (recalled === undefined) return { ...composer, before: draft, after: '', at: null, draft: '' };
  return { ...composer, before: recalled, after: '', at, draft };
}

/** The position at a column of a line, or before it. */
function atColumn(line: string, columns: number): number {
  let used = 0;
  let at = 0;
  for (const grapheme of graphemesOf(line)) {
    used += columnsOf(grapheme);
    if (used > columns) break;
    at += grapheme.length;
  }
  return at;
}

function moveTo(composer: Composer, at: number): Composer {
  const text = textOf(composer);
  return { ...composer, before: text.slice(0, at), after: text.slice(at) };
}

function insert(composer: Composer, text: string): ComposerResult {
  const allowed = printable(text.replaceAll('\r', '\n'));
  if (allowed === '') return { type: 'none' };
  const room = Math.max(0, TEXT_MAX_CHARS - composer.before.length - composer.after.length);
  return edited({ ...composer, before: composer.before + cutGraphemes(allowed, room) });
}

function edited(composer: Composer): ComposerResult {
  return { type: 'edited', composer };
}

/** The last grapheme of a text. */
function lastOf(text: string): string {
  // Only the end of a long text is scanned.
  return graphemesOf(text.slice(-64)).at(-1) ?? '';
}

function firstOf(text: string): string {
  return graphemesOf(text.slice(0, 64))[0] ?? '';
}
