/** `cox replay`. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { blobRefsOf, ID_PATTERN } from '@coxswain/protocol';
import { asDivergence, replayJournal } from '@coxswain/session';
import { withBus } from '../instance/open-bus.ts';
import { findSession } from '../instance/resolve-session.ts';
import { typedIn } from '../instance/state-dir.ts';
import { CliError, EXIT, type ExitCode, usageError } from '../line/cli-error.ts';
import type { CommandRun, Invocation } from '../line/command-spec.ts';
import { standardInput, standardStreams } from '../terminal/streams.ts';

/** Opening it by its path again does not work everywhere: not a socket, and not a second time. */
const STANDARD_INPUT: ReadonlySet<string> = new Set(['-', '/dev/stdin', '/dev/fd/0']);

/** Runs a journal again, from the bus or from an exported file, and says whether every byte came out the same. */
export const run: CommandRun = async (invocation) => {
  const asked = invocation.args[0] as string;
  if (STANDARD_INPUT.has(asked)) return tell(invocation, () => replayJournal(linesOf(standardInput())));
  const file = resolve(typedIn(invocation.env), asked);
  const kind = await kindOf(file);
  if ((kind === null || kind === 'folder') && !ID_PATTERN.test(asked)) {
    throw usageError(
      `${kind === null ? `there is no file ${asked}` : `${asked} is a folder`}; give a session, an exported file, or - for standard input`,
    );
  }
  // It can be read but once, so nobody looks beforehand whether a bus is needed.
  if (kind === 'pipe') return tell(invocation, () => replayJournal(linesOf(createReadStream(file))));
  if (kind === 'file') {
    if (!(await hasLargeFields(file))) return tell(invocation, () => replayJournal(linesOf(createReadStream(file))));
    // Their bytes are not in the file: the bus that it was exported from has them.
    return withBus(invocation, false, async (bus) => {
      const blobs = { get: (sha256: string) => bus.client.blob(sha256) };
      return tell(invocation, () => replayJournal(linesOf(createReadStream(file)), blobs));
    });
  }
  return withBus(invocation, false, async (bus) => {
    const session = await findSession(bus.client, asked);
    const blobs = { get: (sha256: string) => bus.client.blob(sha256) };
    return tell(invocation, () => replayJournal(bytesOf(session.journal()), blobs));
  });
};

async function tell(
  { flags }: Invocation,
  replay: () => Promise<{ readonly records: number; readonly sessionId: string }>,
): Promise<ExitCode> {
  try {
    const { records, sessionId } = await replay();
    if (records === 0) throw new CliError(EXIT.error, 'record_unreadable', 'record_unreadable: it holds no record');
    if (flags.on('json')) {
      standardStreams.out(
        `${JSON.stringify({ type: 'replayed', session_id: sessionId, records, byte_identical: true })}\n`,
      );
    } else standardStreams.out(`byte-identical (${records} records)\n`);
    return EXIT.ok;
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== 'replay_diverged') throw error;
    const { n, path, expected, actual } = error as Partial<Record<'n' | 'path' | 'expected' | 'actual', unknown>>;
    const { message } = error as Error;
    if (flags.on('json')) {
      standardStreams.out(`${JSON.stringify({ type: 'replay_diverged', n, path, expected, actual, message })}\n`);
    } else standardStreams.out(`replay_diverged: ${message}\n`);
    return EXIT.error;
  }
}

async function* bytesOf(records: AsyncIterable<{ readonly bytes: Uint8Array }>): AsyncGenerator<Uint8Array> {
  let n = 0;
  try {
    for await (const { bytes } of records) {
      n++;
      yield bytes;
    }
  } catch (error) {
    throw asDivergence(error, n + 1);
  }
}

async function* linesOf(input: NodeJS.ReadableStream): AsyncGenerator<Uint8Array> {
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line !== '') yield Buffer.from(line, 'utf8');
  }
}

async function hasLargeFields(file: string): Promise<boolean> {
  for await (const line of linesOf(createReadStream(file))) {
    try {
      if (blobRefsOf(line).length > 0) return true;
    } catch {
      // Not a record as it should be: the replay stops there and says why.
      return false;
    }
  }
  return false;
}

async function kindOf(path: string): Promise<'file' | 'pipe' | 'folder' | null> {
  try {
    const found = await stat(path);
    if (found.isFile()) return 'file';
    if (found.isDirectory()) return 'folder';
    return found.isFIFO() || found.isCharacterDevice() ? 'pipe' : null;
  } catch {
    // No such file: then a session is meant.
    return null;
  }
}
