/**
 * Markdown that arrives in pieces. A block that later text cannot change is finished and is not parsed again. Only the
 * last block is parsed again as it grows. Long code and long lists finish line by line and item by item.
 */
import { Lexer, type Token, type Tokens } from 'marked';

/** The text that is not finished. */
export interface MarkdownStream {
  readonly tail: string;
  /** Whether the tail continues a partly finished block, without an empty line between the parts. */
  readonly isContinued: boolean;
  /** The number of the first item in the tail if the tail continues an ordered list. */
  readonly itemNumber: number | null;
}

/** A block, or a part of a long one. */
export interface MarkdownBlock {
  readonly token: Token;
  /** Whether an empty line separates it from the block above. */
  readonly gap: boolean;
}

/** A stream without text. */
export const EMPTY_MARKDOWN: MarkdownStream = { tail: '', isContinued: false, itemNumber: null };

/** Text is processed in pieces of this size, in characters. This bounds each parse, even if an answer arrives whole. */
const PIECE_MAX_CHARS = 2_048;
/** A longer block is finished as it is: the time to parse some inline syntax grows with its square. */
const BLOCK_MAX_CHARS = 4_096;
/** The limit of tables is higher: their cells are short, and the second part of a divided table has no columns. */
const TABLE_MAX_CHARS = 16_384;

/** Appends a text. @returns the new stream, and the blocks that it finished. */
export function appendMarkdown(
  stream: MarkdownStream,
  text: string,
): { readonly stream: MarkdownStream; readonly finished: readonly MarkdownBlock[] } {
  const finished: MarkdownBlock[] = [];
  let open = stream;
  for (let at = 0; at < text.length; at += PIECE_MAX_CHARS) {
    const piece = text.slice(at, at + PIECE_MAX_CHARS);
    open = { ...open, tail: open.tail + piece };
    // A block ends at a line break, or at its maximum length.
    if (!piece.includes('\n') && open.tail.length <= BLOCK_MAX_CHARS) continue;
    const settled = settle(open);
    finished.push(...settled.finished);
    open = settled.stream;
  }
  return { stream: open, finished };
}

/** The blocks of the unfinished text in their current form. */
export function openMarkdown(stream: MarkdownStream): MarkdownBlock[] {
  return blocksOf(lex(stream.tail), stream);
}

/** Finishes the blocks that the complete lines of a stream allow. */
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
/** A closing fence with deeper indentation is code: https://spec.commonmark.org/0.31.2/#fenced-code-blocks. */
const CLOSING_FENCE = /^ {0,3}(`+|~+) *$/;

function isClosedFence({ type, raw }: Token, isFollowed: boolean): boolean {
  const fence = type === 'code' ? FENCE.exec(raw)?.[1] : undefined;
  if (fence === undefined) return false;
  const lines = raw.replace(/\n+$/, '').split('\n');
  const closing = CLOSING_FENCE.exec(lines.at(-1) ?? '')?.[1];
  // Without its line break, the closing line may still become a longer line of code. An empty line includes the line
  // break.
  return lines.length > 1 && (isFollowed || raw.endsWith('\n')) && closing?.startsWith(fence) === true;
}

/**
 * The finished part of an open block, and the remaining text; null if no part is finished.
 * @param stream starts with the block, and may end with an incomplete line.
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
      // After the last line of code, the rest of the block is empty.
      .filter(({ token }) => token.type !== 'code' || token.text !== '')
  );
}

/** The length of tokens in the text, which gives the position of the next token. */
function lengthOf(tokens: readonly { readonly raw: string }[]): number {
  return tokens.reduce((total, { raw }) => total + raw.length, 0);
}

function lex(text: string): Token[] {
  try {
    return new Lexer({ gfm: true }).lex(text);
  } catch (error) {
    // Thousands of nested quotes overflow the parser's stack. Such a text is shown as written.
    if (!(error instanceof RangeError)) throw error;
    return [{ type: 'text', raw: text, text }];
  }
}
