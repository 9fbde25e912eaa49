/**
 * JSON without repeated member names. `JSON.parse` silently keeps the last of two members with the same name, so that
 * two readers of one body could see two commands (RFC 8259, section 4).
 */
import { cutText } from './unicode-text.ts';

/** The parsed value; or a clause that says why the text is not JSON, or which member is repeated. */
export type StrictJson = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly why: string };

/** The longest path of a member in a message, in characters. */
const PATH_MAX_CHARS = 128;

/** Reads JSON and refuses repeated members. Linear in the text, and not recursive. */
export function parseStrictJson(text: string): StrictJson {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { ok: false, why: withoutQuote((error as Error).message) };
  }
  const repeated = repeatedMember(text);
  if (repeated === null) return { ok: true, value };
  return { ok: false, why: `the member ${JSON.stringify(cutText(repeated, PATH_MAX_CHARS))} is repeated` };
}

/** Removes the quote at the end of a message of V8: the text around a syntax error may be a secret. */
function withoutQuote(message: string): string {
  return message.replace(/, (?:\.\.\.)?"[\s\S]*$/, '');
}

/** An unfinished object or list. */
interface Open {
  /** The member names of an object so far; null for a list. */
  readonly names: Set<string> | null;
  /** The name of the current member; `[]` for a list. */
  name: string;
}

const [QUOTE, COLON, BACKSLASH] = [0x22, 0x3a, 0x5c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** The path of the first repeated member of valid JSON: `args.path`, lists as `[]`; or null. */
function repeatedMember(text: string): string | null {
  const open: Open[] = [];
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case OPEN_OBJECT:
        open.push({ names: new Set(), name: '' });
        break;
      case OPEN_LIST:
        open.push({ names: null, name: '[]' });
        break;
      case CLOSE_OBJECT:
      case CLOSE_LIST:
        open.pop();
        break;
      case QUOTE: {
        const from = at;
        at = closingQuote(text, from);
        const inside = open.at(-1);
        if (!inside?.names || !isFollowedByColon(text, at + 1)) break;
        inside.name = nameOf(text.slice(from, at + 1));
        if (inside.names.has(inside.name)) return open.map(({ name }) => name).join('.');
        inside.names.add(inside.name);
      }
    }
  }
  return null;
}

/** The index of the closing quote of a string. Each run of backslashes is counted once. */
function closingQuote(text: string, from: number): number {
  for (let quote = text.indexOf('"', from + 1); ; quote = text.indexOf('"', quote + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(quote - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return quote;
  }
}

function isFollowedByColon(text: string, from: number): boolean {
  let at = from;
  // All white space of JSON is at or below U+0020.
  while (text.charCodeAt(at) <= 0x20) at += 1;
  return text.charCodeAt(at) === COLON;
}

/** Decodes a member name: `"path"` and `"p\u0061th"` are the same name. */
function nameOf(written: string): string {
  return written.includes('\\') ? (JSON.parse(written) as string) : written.slice(1, -1);
}
