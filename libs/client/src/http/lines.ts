/** Splits the body of a response into lines. */
import { CoxswainError } from '../client-errors.ts';

const LINE_FEED = 10;

// The build has no DOM library: the global types of Node include the reader, but not the result of a read.
type LineReader = ReadableStreamDefaultReader<Uint8Array>;

/**
 * Splits a stream into lines, without their line breaks. Text after the last line break is a line, too.
 * @param maxBytes The maximum number of buffered bytes of an incomplete line.
 * @param read Reads the next piece. It throws if the connection is lost.
 * @throws CoxswainError `answer_unreadable` if that number is exceeded.
 */
export async function* linesOf(
  body: ReadableStream<Uint8Array>,
  maxBytes: number,
  read: (reader: LineReader) => ReturnType<LineReader['read']>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body.getReader();
  let pieces: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await read(reader);
    if (done) break;
    let start = 0;
    for (let end = value.indexOf(LINE_FEED); end >= 0; end = value.indexOf(LINE_FEED, start)) {
      pieces.push(value.subarray(start, end));
      yield joined(pieces);
      pieces = [];
      bytes = 0;
      start = end + 1;
    }
    pieces.push(value.subarray(start));
    bytes += value.length - start;
    if (bytes > maxBytes) throw new CoxswainError('answer_unreadable', `a line has more than ${maxBytes} bytes`);
  }
  const last = joined(pieces);
  if (last.length > 0) yield last;
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
