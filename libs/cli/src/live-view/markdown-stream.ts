/**
 * Markdown that arrives in pieces. A block that later text cannot change is finished, and is never read again: only the last
 * block is parsed anew as it grows. Long code and long lists finish line by line and item by item.
 */
import { Lexer, type Token, type Tokens } from 'marked';

/** What has arrived and is not finished. */
export interface MarkdownStream {
  readonly tail: string;
  /** The tail continues a block of which a part is finished, without an empty line between the parts. */
  readonly isContinued: boolean;
  /** The number of the first item in the tail if the tail continues an ordered list. */
  readonly itemNumber: number | null;
}

/** A block, or a part of a long one. */
export interface MarkdownBlock {
  readonly token: Token;
  /** Whether an empty line separates it from what stands above. */
  readonly gap: boolean;
}

/** Nothing has arrived. */
export const EMPTY_MARKDOWN: MarkdownStream = { tail: '', isContinued: false, itemNumber: null };

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
  let open = stream;
  for (let at = 0; at < text.length; at += PIECE_MAX_CHARS) {
    const piece = text.slice(at, at + PIECE_MAX_CHARS);
    open = { ...open, tail: open.tail + piece };
    // Only a line break ends a block.
    if (!piece.includes('\n') && open.tail.length <= BLOCK_MAX_CHARS) continue;
    const settled = settle(open);
    finished.push(...settled.finished);
    open = settled.stream;
  }
  return { stream: open, finished };
}

/** The blocks of a stream as they are now; all that is left where nothing more comes. */
export function openMarkdown(stream: MarkdownStream): MarkdownBlock[] {
  return blocksOf(lex(stream.tail), stream);
}

/** Finishes what the complete lines of a stream allow. */
function settle(stream: MarkdownStream): { stream: MarkdownStream; finished: MarkdownBlock[] } {
  const { tail } = stream;
  const tokens = lex(tail.slice(0, tail.lastIndexOf('\n') + 1));
  const open = openFrom(tokens);
  const finished = blocksOf(tokens.slice(0, open), stream);
  const last = tokens[open];
  const before = tokens.slice(0, open).every(({ type }) => type === 'space') ? stream : EMPTY_MARKDOWN;
  const left = { ...before, tail: tail.slice(lengthOf(tokens.slice(0, open))) };
  const part = last === undefined ? null : finishedPart(last, left);
  if (part !== null) {
    finished.push(...blocksOf([part.done], left));
    return { stream: part.left, finished };
  }
  if (left.tail.length <= (last?.type === 'table' ? TABLE_MAX_CHARS : BLOCK_MAX_CHARS))
    return { stream: left, finished };
  finished.push(...blocksOf(lex(left.tail), left));
  return { stream: { ...EMPTY_MARKDOWN, isContinued: true }, finished };
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
/** Deeper indentation makes the line code: https://spec.commonmark.org/0.31.2/#fenced-code-blocks. */
const CLOSING_FENCE = /^ {0,3}(`+|~+) *$/;

function isClosedFence({ type, raw }: Token, isFollowed: boolean): boolean {
  const fence = type === 'code' ? FENCE.exec(raw)?.[1] : undefined;
  if (fence === undefined) return false;
  const lines = raw.replace(/\n+$/, '').split('\n');
  const closing = CLOSING_FENCE.exec(lines.at(-1) ?? '')?.[1];
  // Without its line break the closing line may still become a longer one, which is code. An empty line takes the line break.
  return lines.length > 1 && (isFollowed || raw.endsWith('\n')) && closing?.startsWith(fence) === true;
}

/**
 * The part of an open block that is finished, and what is left of the text; null where nothing is.
 * @param stream begins with the block, and may end with an incomplete line.
 */
function finishedPart(token: Token, stream: MarkdownStream): { done: Token; left: MarkdownStream } | null {
  if (token.type === 'code' && FENCE.test(token.raw)) {
    const [opening, ...lines] = stream.tail.split('\n');
    if (lines.length < 2) return null;
    return { done: token, left: { ...EMPTY_MARKDOWN, tail: `${opening}\n${lines.at(-1)}`, isContinued: true } };
  }
  if (token.type === 'list') {
    const { items, start } = token as Tokens.List;
    const done = items.slice(0, -1);
    const last = done.at(-1);
    if (last === undefined) return null;
    const itemNumber = start === '' ? null : (stream.itemNumber ?? start) + done.length;
    const tail = stream.tail.slice(lengthOf(done));
    return { done: { ...token, items: done }, left: { tail, isContinued: !isApart(last), itemNumber } };
  }
  return null;
}

/** Whether an empty line separates an item of a list from the next one. */
export function isApart({ raw }: Tokens.ListItem): boolean {
  return /\n[ \t]*\n[ \t]*$/.test(raw);
}

function blocksOf(tokens: readonly Token[], { isContinued, itemNumber }: MarkdownStream): MarkdownBlock[] {
  return (
    tokens
      .filter(({ type }) => type !== 'space')
      .map((token, index) => ({
        token: index === 0 && token.type === 'list' && itemNumber !== null ? { ...token, start: itemNumber } : token,
        gap: index > 0 || !isContinued,
      }))
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
