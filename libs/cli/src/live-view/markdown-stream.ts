/**
 * Markdown that arrives in pieces. A block that later text cannot change is finished, and is never read again: only the last
 * block is parsed anew as it grows. Long code and long lists finish line by line and item by item.
 */
import { Lexer, type Token, type Tokens } from 'marked';

/** What has arrived and is not finished. */
export interface MarkdownStream {
  readonly tail: string;
  /** The tail continues a block of which a part is finished. */
  readonly isContinued: boolean;
}

/** A block, or a part of a long one. */
export interface MarkdownBlock {
  readonly token: Token;
  /** Whether an empty line separates it from what stands above. */
  readonly gap: boolean;
}

/** Nothing has arrived. */
export const EMPTY_MARKDOWN: MarkdownStream = { tail: '', isContinued: false };

/** Text is taken in pieces of this size: it bounds what is parsed at once, also of an answer that comes whole. */
const PIECE_MAX_CHARS = 2_048;
/** A longer block is finished as it is: some inline syntax takes time that grows with its square. */
const BLOCK_MAX_CHARS = 4_096;
/** Cells are short, and a table that is cut has no columns in its second part. */
const TABLE_MAX_CHARS = 16_384;

/** Appends a text. */
export function appendMarkdown(
  stream: MarkdownStream,
  text: string,
): { readonly stream: MarkdownStream; readonly finished: readonly MarkdownBlock[] } {
  const finished: MarkdownBlock[] = [];
  let { tail, isContinued } = stream;
  for (let at = 0; at < text.length; at += PIECE_MAX_CHARS) {
    const piece = text.slice(at, at + PIECE_MAX_CHARS);
    tail += piece;
    // Only a line break ends a block.
    if (!piece.includes('\n') && tail.length <= BLOCK_MAX_CHARS) continue;
    const settled = settle({ tail, isContinued });
    finished.push(...settled.finished);
    ({ tail, isContinued } = settled.stream);
  }
  return { stream: { tail, isContinued }, finished };
}

/** The blocks of a stream as they are now; all that is left where nothing more comes. */
export function openMarkdown(stream: MarkdownStream): MarkdownBlock[] {
  return blocksOf(lex(stream.tail), stream.isContinued);
}

/** Finishes what the complete lines of a stream allow. */
function settle({ tail, isContinued }: MarkdownStream): { stream: MarkdownStream; finished: MarkdownBlock[] } {
  const lines = tail.slice(0, tail.lastIndexOf('\n') + 1);
  const tokens = lex(lines);
  const open = openFrom(tokens);
  const finished = blocksOf(tokens.slice(0, open), isContinued);
  const last = tokens[open];
  const left = tail.slice(lengthOf(tokens.slice(0, open)));
  const continues = isContinued && tokens.slice(0, open).every(({ type }) => type === 'space');
  const part = last === undefined ? null : finishedPart(last, left);
  if (part !== null) {
    finished.push({ token: part.done, gap: !continues });
    return { stream: { tail: part.left, isContinued: true }, finished };
  }
  if (left.length <= (last?.type === 'table' ? TABLE_MAX_CHARS : BLOCK_MAX_CHARS))
    return { stream: { tail: left, isContinued: continues }, finished };
  finished.push(...blocksOf(lex(left), continues));
  return { stream: { tail: '', isContinued: true }, finished };
}

/** The index of the first token that later text may change. */
function openFrom(tokens: readonly Token[]): number {
  let last = tokens.length - 1;
  const isFollowed = tokens[last]?.type === 'space';
  if (isFollowed) last -= 1;
  const token = tokens[last];
  if (token === undefined) return tokens.length;
  const isClosed = (isFollowed && ENDS_AT_A_BLANK_LINE.has(token.type)) || isClosedFence(token, isFollowed);
  return isClosed ? tokens.length : last;
}

const ENDS_AT_A_BLANK_LINE: ReadonlySet<string> = new Set(['paragraph', 'heading', 'hr', 'table']);

const FENCE = /^ {0,3}(`{3,}|~{3,})/;

function isClosedFence({ type, raw }: Token, isFollowed: boolean): boolean {
  const fence = type === 'code' ? FENCE.exec(raw)?.[1] : undefined;
  if (fence === undefined) return false;
  const lines = raw.trimEnd().split('\n');
  const last = lines.at(-1)?.trim() ?? '';
  // Without its line break the closing line may still become a longer one, which is code. An empty line takes the line break.
  return lines.length > 1 && (isFollowed || raw.endsWith('\n')) && last.startsWith(fence) && /^(`+|~+)$/.test(last);
}

/**
 * The part of an open block that is finished, and what is left of the text; null where nothing is.
 * @param text from the block on, with a last line that may not be complete.
 */
function finishedPart(token: Token, text: string): { done: Token; left: string } | null {
  if (token.type === 'code' && FENCE.test(token.raw)) {
    const [opening, ...lines] = text.split('\n');
    const open = lines.pop();
    return open === undefined || lines.length === 0
      ? null
      : { done: { ...token, text: lines.join('\n') }, left: `${opening}\n${open}` };
  }
  if (token.type === 'list') {
    const items = (token as Tokens.List).items.slice(0, -1);
    return items.length === 0 ? null : { done: { ...token, items }, left: text.slice(lengthOf(items)) };
  }
  return null;
}

function blocksOf(tokens: readonly Token[], isContinued: boolean): MarkdownBlock[] {
  return (
    tokens
      .filter(({ type }) => type !== 'space')
      .map((token, index) => ({ token, gap: index > 0 || !isContinued }))
      // What is left of code after its last line is empty.
      .filter(({ token }) => token.type !== 'code' || token.text !== '')
  );
}

/** The parser consumes a text token by token: their lengths say where the next one begins. */
function lengthOf(tokens: readonly { readonly raw: string }[]): number {
  return tokens.reduce((total, { raw }) => total + raw.length, 0);
}

function lex(text: string): Token[] {
  try {
    return new Lexer({ gfm: true }).lex(text);
  } catch (error) {
    // Thousands of nested quotes overflow the parser's stack. They are shown as they were written.
    if (!(error instanceof RangeError)) throw error;
    return [{ type: 'text', raw: text, text }];
  }
}
