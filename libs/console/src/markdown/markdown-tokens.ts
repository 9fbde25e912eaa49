/**
 * Parses Markdown in bounded time: text of a model must not freeze the page. For a malicious paragraph, the lexer takes
 * quadratic time. For deeply nested text it throws.
 */
import { Lexer, type Token, Tokenizer, type Tokens } from 'marked';

/** Texts with more characters or lines are shown as plain text. */
const MARKDOWN_MAX_CHARS = 100_000;
const MARKDOWN_MAX_LINES = 5_000;
/** The inline Markdown of a longer paragraph is not parsed. */
const PARAGRAPH_MAX_CHARS = 4_000;
/**
 * The squares of the lengths of a text's paragraphs and cells, in total: four of the longest, or 64 of 1,000 characters.
 * The inline Markdown of one that exceeds the rest is not parsed.
 */
const PARAGRAPHS_MAX_SQUARES = 4 * PARAGRAPH_MAX_CHARS ** 2;
/** Quotes and lists that are nested 25 levels deep on one line. */
const NESTED_ON_A_LINE = /^(?:[ \t]*(?:>|[-+*][ \t]|\d{1,9}[.)][ \t])){25}/m;

/** The text of a heading with an underline is not longer: the lexer looks for the underline from each line on. */
const UNDERLINED_MAX_CHARS = 500;
/** A table with more cells is shown as text: a short line counts as a whole row. */
const CELLS_MAX = 10_000;
/** The start of a table: its header, and the line below. */
const TABLE_HEAD = /^([^\n]*)\n[ \t]*[|:-][|:\- \t]*(?:\n|$)/;

/** The rules that would take quadratic time, with limits. */
class BoundedTokenizer extends Tokenizer {
  override lheading(src: string): Tokens.Heading | undefined {
    // Cut at the end of a line, so that no underline is cut.
    const end = src.length > UNDERLINED_MAX_CHARS ? src.lastIndexOf('\n', UNDERLINED_MAX_CHARS) : src.length;
    return end < 0 ? undefined : super.lheading(src.slice(0, end));
  }

  override table(src: string): Tokens.Table | undefined {
    const [head, names = ''] = TABLE_HEAD.exec(src) ?? [];
    if (head === undefined || !this.#isTable(head)) return undefined;
    return hasMoreRows(src, CELLS_MAX / names.split('|').length) ? undefined : super.table(src);
  }

  /** Whether a head, which alone is a table too, is one. The lexer would read all rows before it rejects the head. */
  #isTable(head: string): boolean {
    const { inlineQueue } = this.lexer;
    const { length } = inlineQueue;
    const table = super.table(head);
    // The lexer expects no cells of a table that it does not get.
    inlineQueue.length = length;
    return table !== undefined;
  }
}

/** Whether a text begins with more lines than a number, none of them blank. */
function hasMoreRows(text: string, max: number): boolean {
  let start = 0;
  for (let rows = 0; rows <= max; rows++) {
    const end = text.indexOf('\n', start);
    if (text.slice(start, end < 0 ? undefined : end).trim() === '') return false;
    if (end < 0) return rows + 1 > max;
    start = end + 1;
  }
  return true;
}

/** The tokens of a text; null if it must be shown as plain text. */
export function markdownTokens(text: string): readonly Token[] | null {
  if (text.length > MARKDOWN_MAX_CHARS || NESTED_ON_A_LINE.test(text)) return null;
  const lines = text.replaceAll(/\r\n?/g, '\n');
  if (lines.split('\n').length > MARKDOWN_MAX_LINES) return null;
  const lexer = new Lexer({ gfm: true, breaks: true, tokenizer: new BoundedTokenizer() });
  try {
    lexer.blockTokens(lines, lexer.tokens);
    let squares = PARAGRAPHS_MAX_SQUARES;
    for (const { src, tokens } of lexer.inlineQueue) {
      const square = src.length ** 2;
      if (src.length > PARAGRAPH_MAX_CHARS || square > squares)
        tokens.push({ type: 'text', raw: src, text: src, escaped: false });
      else {
        squares -= square;
        lexer.inlineTokens(src, tokens);
      }
    }
  } catch {
    // The lexer failed: the text is shown as plain text.
    return null;
  }
  return lexer.tokens;
}
