/** Arguments and results of tool calls in one short line, for people. */
import { cutGraphemes, cutMiddle, type Json, type ToolResult } from '@coxswain/protocol';

const SUMMARY_MAX_CHARS = 120;
/** The maximum length for a person who decides about a call: it fits almost every command and a terminal. */
export const DECISION_MAX_CHARS = 1_000;

const ABOUT: ReadonlySet<string> = new Set(['path', 'file', 'command', 'url', 'query', 'name', 'id']);

/**
 * Formats arguments in one line: the value of a single argument, otherwise `name: value, …`. See {@link visibleLine}.
 * @param maxChars In UTF-16 units. Default 120. Use {@link DECISION_MAX_CHARS} where a person decides about the call.
 */
export function summarizeArgs(args: Json, maxChars = SUMMARY_MAX_CHARS): string {
  if (args === null) return '';
  if (typeof args !== 'object' || Array.isArray(args)) return inOneLine(args, maxChars);
  // The most telling arguments come first: a long list of arguments is cut.
  const entries = Object.entries(args).sort(([a], [b]) => Number(ABOUT.has(b)) - Number(ABOUT.has(a)));
  const [only] = entries;
  if (entries.length === 1 && only !== undefined) return inOneLine(only[1], maxChars);
  const parts = entries.map(([name, value]) => `${visibleLine(name, 60)}: ${inOneLine(value, maxChars / 2)}`);
  return cutMiddle(parts.join(', '), maxChars);
}

/**
 * The first line of a result that is not blank. It is `(media type)` for a part that is not text, and empty without
 * either.
 */
export function summarizeResult(result: ToolResult): string {
  for (const part of result.content) {
    if (part.type !== 'text') return `(${part.media_type})`;
    const line = part.text.split('\n').find((candidate) => candidate.trim() !== '');
    if (line !== undefined) return cut(printable(line.trim()));
  }
  return '';
}

function inOneLine(value: Json, maxChars: number): string {
  return visibleLine(typeof value === 'string' ? value : JSON.stringify(value), maxChars);
}

/**
 * Formats a text in one line that hides nothing from the person who decides about it. Invisible characters and those
 * that change the reading order become escapes (`\u202e`). A run of 16 or more blanks becomes its length. A text that
 * is longer than `maxChars` UTF-16 units is cut in the middle, so its end stays visible.
 */
export function visibleLine(text: string, maxChars: number): string {
  const blanksCounted = text
    .replace(BLANKS, (run) => ` [${run.length} blanks] `)
    .replaceAll('\n', '⏎')
    .replaceAll('\t', '⇥');
  return cutMiddle(escapeUnseen(blanksCounted), maxChars);
}

/** Longer than usual indentation, and shorter than a run that pushes the rest of a line out of sight. */
const BLANKS = /[\s\u2800]{16,}/gu;

/**
 * Removes control characters from texts of models and tools: they could control the terminal or page that shows them.
 * Also removes characters that change the reading order
 * (https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing): a person must see what they approve. Line breaks
 * and tabs stay.
 */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are exactly the characters that must not pass
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, '');
}

/**
 * Formats JSON with an indentation of two spaces. Characters that {@link printable} removes, and invisible ones, become
 * JSON escapes. They are part of the value that runs, so the person who decides must see them. The text parses to the
 * same value.
 */
export function printableJson(value: Json): string {
  return escapeUnseen(JSON.stringify(value, null, 2));
}

/** Control and format characters, separators and characters without a width; not line breaks. */
const UNSEEN = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

function escapeUnseen(text: string): string {
  return text.replace(UNSEEN, (found, at: number) => {
    if (isOfScript(found, text.charCodeAt(at - 1), text.charCodeAt(at + 1))) return found;
    return Array.from({ length: found.length }, (_, i) => escapeOf(found.charCodeAt(i))).join('');
  });
}

/**
 * Whether a joiner or a variation selector has its normal use in a script or an emoji. Next to ASCII it has none.
 * @param before The UTF-16 unit before it; NaN at the start of the text.
 * @param after The UTF-16 unit after it; NaN at the end of the text.
 */
function isOfScript(found: string, before: number, after: number): boolean {
  if (found === '\u200c' || found === '\u200d') return before > 0x7f && after > 0x7f;
  if (found === '\ufe0e' || found === '\ufe0f') return before > 0x7f || after === KEYCAP;
  return false;
}

/** The combining enclosing keycap, as in 1️⃣. */
const KEYCAP = 0x20e3;

function escapeOf(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}

function cut(text: string, max = SUMMARY_MAX_CHARS): string {
  if (text.length <= max) return text;
  return `${cutGraphemes(text, max - 1)}…`;
}
