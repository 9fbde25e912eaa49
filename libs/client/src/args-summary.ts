/** Call arguments and results in one short line, for people. */
import { cutGraphemes, type Json, type ToolResult } from '@coxswain/protocol';

const SUMMARY_MAX_CHARS = 120;

const ABOUT: ReadonlySet<string> = new Set(['path', 'file', 'command', 'url', 'query', 'name', 'id']);

/** Arguments in short: the only value of a single one, else `name: value, …`; long ones are cut. */
export function summarizeArgs(args: Json): string {
  if (args === null) return '';
  if (typeof args !== 'object' || Array.isArray(args)) return cut(inOneLine(args));
  // What a call is about goes first: where its arguments are long, the rest is cut.
  const entries = Object.entries(args).sort(([a], [b]) => Number(ABOUT.has(b)) - Number(ABOUT.has(a)));
  const [only] = entries;
  if (entries.length === 1 && only !== undefined) return cut(inOneLine(only[1]));
  return cut(entries.map(([name, value]) => `${name}: ${cut(inOneLine(value), 60)}`).join(', '));
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

function inOneLine(value: Json): string {
  return printable(typeof value === 'string' ? value.replaceAll('\n', '⏎') : JSON.stringify(value));
}

/**
 * Text from models and tools without the control characters that would drive the terminal or page that shows it, and
 * without those that turn the order of what is read (https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing):
 * what a person approves must be what they see. Line breaks and tabs stay.
 */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are exactly the characters that must not pass
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, '');
}

/**
 * JSON laid out for people. What {@link printable} takes away, and what takes no room on a screen, stands here as JSON's own
 * escapes: it is part of what is run, so whoever decides about it has to see it. Read as JSON it is the same value.
 */
export function printableJson(value: Json): string {
  return JSON.stringify(value, null, 2).replace(UNSEEN, (found) =>
    Array.from({ length: found.length }, (_, i) => escapeOf(found.charCodeAt(i))).join(''),
  );
}

/** Controls, format characters and separators, but for line breaks and for the joiners that scripts and emoji are written with. */
const UNSEEN = /(?![\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

function escapeOf(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}

function cut(text: string, max = SUMMARY_MAX_CHARS): string {
  if (text.length <= max) return text;
  return `${cutGraphemes(text, max - 1)}…`;
}
