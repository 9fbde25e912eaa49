/** Call arguments and results in one short line, for people. */
import { cutGraphemes, cutMiddle, type Json, type ToolResult } from '@coxswain/protocol';

const SUMMARY_MAX_CHARS = 120;
/** For a person who decides about a call: long enough for almost every command, short enough for a terminal. */
export const DECISION_MAX_CHARS = 1_000;

const ABOUT: ReadonlySet<string> = new Set(['path', 'file', 'command', 'url', 'query', 'name', 'id']);

/**
 * Arguments in one line: the only value of a single one, else `name: value, …`. See {@link visibleLine}.
 * @param maxChars {@link DECISION_MAX_CHARS} where a person decides about the call.
 */
export function summarizeArgs(args: Json, maxChars = SUMMARY_MAX_CHARS): string {
  if (args === null) return '';
  if (typeof args !== 'object' || Array.isArray(args)) return inOneLine(args, maxChars);
  // What a call is about goes first: where its arguments are long, the rest is cut.
  const entries = Object.entries(args).sort(([a], [b]) => Number(ABOUT.has(b)) - Number(ABOUT.has(a)));
  const [only] = entries;
  if (entries.length === 1 && only !== undefined) return inOneLine(only[1], maxChars);
  const parts = entries.map(([name, value]) => `${visibleLine(name, 60)}: ${inOneLine(value, maxChars / 2)}`);
  return cutMiddle(parts.join(', '), maxChars);
}

/** A result's first line with something on it. */
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
 * that change the reading order become escapes (`\u202e`), and long runs of blanks become their number. A long text is
 * cut in the middle, so that its end is always shown.
 */
export function visibleLine(text: string, maxChars: number): string {
  const blanksCounted = text
    .replace(BLANKS, (run) => ` [${run.length} blanks] `)
    .replaceAll('\n', '⏎')
    .replaceAll('\t', '⇥');
  return cutMiddle(escapeUnseen(blanksCounted), maxChars);
}

/** Longer than indentation, shorter than what pushes the rest of a line out of sight. */
const BLANKS = /[\s\u2800]{16,}/gu;

/**
 * Removes control characters from texts of models and tools, which could drive the terminal or page that shows them.
 * Also removes characters that change the reading order
 * (https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing): a person must see what they approve. Line breaks
 * and tabs stay.
 */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are exactly the characters that must not pass
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, '');
}

/**
 * JSON laid out for people. What {@link printable} takes away, and what takes no room on a screen, stands here as JSON's own
 * escapes: it is part of what is run, so the person who decides has to see it. Read as JSON it is the same value.
 */
export function printableJson(value: Json): string {
  return escapeUnseen(JSON.stringify(value, null, 2));
}

/** Control and format characters, separators, and fillers that take no room; not line breaks. */
const UNSEEN = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

function escapeUnseen(text: string): string {
  return text.replace(UNSEEN, (found, at: number) => {
    if (isOfScript(found, text.charCodeAt(at - 1), text.charCodeAt(at + 1))) return found;
    return Array.from({ length: found.length }, (_, i) => escapeOf(found.charCodeAt(i))).join('');
  });
}

/**
 * Whether a joiner or a variation selector does what scripts and emoji have it for. Next to ASCII it does not, and a command is
 * ASCII where it matters.
 * @param before the code before it, and `after` the one behind; NaN at an end of the text.
 */
function isOfScript(found: string, before: number, after: number): boolean {
  if (found === '\u200c' || found === '\u200d') return before > 0x7f && after > 0x7f;
  if (found === '\ufe0e' || found === '\ufe0f') return before > 0x7f || after === KEYCAP;
  return false;
}

/** The enclosing keycap of 1️⃣. */
const KEYCAP = 0x20e3;

function escapeOf(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}

function cut(text: string, max = SUMMARY_MAX_CHARS): string {
  if (text.length <= max) return text;
  return `${cutGraphemes(text, max - 1)}…`;
}
