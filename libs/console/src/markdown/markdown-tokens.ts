/**
 * Parses Markdown in bounded time: text of a model must not freeze the page. For a malicious paragraph, the lexer takes
 * quadratic time. For deeply nested text it throws.
 */
import { Lexer, type Token } from 'marked';

/** Longer texts are shown as plain text. */
const MARKDOWN_MAX_CHARS = 100_000;
/** The inline Markdown of a longer paragraph is not parsed. */
const PARAGRAPH_MAX_CHARS = 4_000;
/** Quotes and lists that are nested 25 levels deep on one line. */
const NESTED_ON_A_LINE = /^(?:[ \t]*(?:>|[-+*][ \t]|\d{1,9}[.)][ \t])){25}/m;

/** The tokens of a text; null if it must be shown as plain text. */
export function markdownTokens(text: string): readonly Token[] | null {
  if (text.length > MARKDOWN_MAX_CHARS || NESTED_ON_A_LINE.test(text)) return null;
  const lexer = new Lexer({ gfm: true, breaks: true });
  try {
    lexer.blockTokens(text.replaceAll(/\r\n?/g, '\n'), lexer.tokens);
    for (const { src, tokens } of lexer.inlineQueue) {
      if (src.length > PARAGRAPH_MAX_CHARS) tokens.push({ type: 'text', raw: src, text: src, escaped: false });
      else lexer.inlineTokens(src, tokens);
    }
  } catch {
    // The lexer failed: the text is shown as plain text.
    return null;
  }
  return lexer.tokens;
}
