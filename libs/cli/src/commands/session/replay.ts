/** `cox session replay`. */
import { printable } from '@coxswain/client';
import { ExportLineInvalidError } from '@coxswain/protocol';
import { withBus } from '../../instance/mod.ts';
import { journalSource, needsBus, type OpenJournal, unprovenNewest, unprovenTail } from '../../journals/mod.ts';
import { type CommandRun, EXIT, type ExitCode, type Invocation } from '../../line/mod.ts';
import { counted, standardStreams } from '../../terminal/mod.ts';

/**
 * Replays a journal from the bus or from an exported file, and prints whether every byte is identical. Exits 1 for
 * `replay_diverged`.
 */
export const run: CommandRun = async (invocation) => {
  const source = await journalSource(invocation.args[0] as string, invocation.env);
  if (!(await needsBus(invocation, [source]))) return printReplay(invocation, await source.open(null));
  return withBus(invocation, false, async (bus) => printReplay(invocation, await source.open(bus.client)));
};

async function printReplay(
  { flags }: Invocation,
  { name, records: bytes, blobs, exported }: OpenJournal,
): Promise<ExitCode> {
  const { replayJournal } = await import('@coxswain/session');
  try {
    const { records, sessionId } = await replayJournal(bytes, blobs);
    if (records === 0) throw new ExportLineInvalidError(`${name} is not a session export: it contains no record`);
    const isTailProven = exported?.isTailProven === true;
    if (flags.on('json')) {
      standardStreams.out(
        `${JSON.stringify({ type: 'replayed', session_id: sessionId, records, byte_identical: true, tail_proven: isTailProven })}\n`,
      );
    } else standardStreams.out(`byte-identical (${counted(records, 'record')})\n`);
    if (!isTailProven) standardStreams.err((exported ? unprovenTail : unprovenNewest)(name, records));
    return EXIT.ok;
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== 'replay_diverged') throw error;
    const { n, path, expected, actual } = error as Partial<Record<'n' | 'path' | 'expected' | 'actual', unknown>>;
    const { message } = error as Error;
    if (flags.on('json')) {
      standardStreams.out(`${JSON.stringify({ type: 'replay_diverged', n, path, expected, actual, message })}\n`);
    } else standardStreams.out(`replay_diverged: ${printable(message)}\n`);
    return EXIT.error;
  }
}
