/** Splits a byte stream into lines of bounded length, for exported journals. */
import { BOUNDS, ExportLineInvalidError } from '@coxswain/protocol';

const NEWLINE = 0x0a;
const RETURN = 0x0d;

/**
 * The lines, without line breaks (LF or CRLF). A last line without a line break counts.
 * @throws ExportLineInvalidError for a line with more than {@link BOUNDS}.exportLineMaxBytes; errors of `input`.
 */
export async function* linesOf(input: AsyncIterable<Buffer | string>): AsyncGenerator<Uint8Array, void, undefined> {
  let parts: Buffer[] = [];
  let held = 0;
  for await (const chunk of input) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, 'utf8') : chunk;
    let from = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, from)) {
      checkLength(held + end - from);
      yield withoutReturn(Buffer.concat([...parts, bytes.subarray(from, end)]));
      parts = [];
      held = 0;
      from = end + 1;
    }
    parts.push(bytes.subarray(from));
    held += bytes.length - from;
    checkLength(held);
  }
  if (held > 0) yield withoutReturn(Buffer.concat(parts));
}

function checkLength(bytes: number): void {
  if (bytes > BOUNDS.exportLineMaxBytes)
    throw new ExportLineInvalidError(`a line has more than ${BOUNDS.exportLineMaxBytes} bytes`);
}

function withoutReturn(line: Buffer): Buffer {
  return line.at(-1) === RETURN ? line.subarray(0, -1) : line;
}
