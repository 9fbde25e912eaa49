/**
 * Reads Markdown in bounded time. Its reader takes as long as the square of a paragraph's length where somebody has written one to
 * be slow, and falls where one has nested without end: a text of a model must not stop the page.
 */
import { Lexer, type Token } from 'marked';

/** Longer texts are shown as they are. */
const MARKDOWN_MAX_CHARS = 100_000;
/** A longer paragraph is laid out as a paragraph, with nothing laid out in it. */
const PARAGRAPH_MAX_CHARS = 4_000;
/** Quotes and lists that begin one in the other on one line. */
const NESTED_ON_A_LINE = /^(?:[ \t]*(?:>|[-+*][ \t]|\d{1,9}[.)][ \t])){25}/m;

/** What a text is made of; null where it is to be shown as it is. */
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
    // It gave up: a text is a text all the same.
    return null;
  }
  return lexer.tokens;
}
