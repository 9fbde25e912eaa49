/** Reads texts from standard input: a prompt or a message given as `-`. */
import { BOUNDS, utf8Of } from '@coxswain/protocol';
import { usageError } from '../line/mod.ts';
import { standardInput } from '../terminal/mod.ts';

/**
 * The text itself, or standard input if it is `-`. @param what the name of the text in errors. @throws CliError with
 * exit code 2 for an empty, too long or invalid text.
 */
export async function textOrInput(text: string, what: string): Promise<string> {
  const given = text === '-' ? await readInput(what) : text;
  if (given.trim() === '') throw usageError(`${what} is empty`);
  return given;
}

async function readInput(what: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of standardInput() as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BOUNDS.commandBodyMaxBytes) {
      throw usageError(`${what} on standard input is over ${BOUNDS.commandBodyMaxBytes} bytes`);
    }
    chunks.push(chunk);
  }
  const text = utf8Of(Buffer.concat(chunks));
  if (text === null) throw usageError(`${what} on standard input is not UTF-8 text`);
  return text.replace(/\n$/, '');
}
