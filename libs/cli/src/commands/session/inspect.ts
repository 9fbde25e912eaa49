/** `cox session inspect`. */
import { type BusClient, hasEnded, SessionNotFoundError } from '@coxswain/client';
import type { SessionInspector } from '@coxswain/session';
import { findSession, withBus, withBusOnce } from '../../instance/mod.ts';
import { journalSource, needsBus, showFile, showSession } from '../../journals/mod.ts';
import { type CommandRun, EXIT, type ExitCode, type Invocation, recordNotThere, usageError } from '../../line/mod.ts';
import { stopSignal } from '../../service/mod.ts';

/**
 * Shows the state machine of a session or a journal. A terminal gets the viewer of the console. Other output gets
 * messages of the XState inspector, one per line.
 */
export const run: CommandRun = async (invocation) => {
  const { flags, args, env } = invocation;
  const from = flags.whole('from', { min: 1, max: Number.MAX_SAFE_INTEGER });
  const port = flags.whole('gateway-port', { min: 1, max: 65_535 });
  const source = await journalSource(args[0] as string, env);
  if (flags.on('follow') && source.kind !== 'session')
    throw usageError('--follow needs a session: a file does not change');
  if (!flags.on('json') && process.stdout.isTTY === true) {
    if (flags.on('follow')) throw usageError('--follow needs --json: the viewer always follows');
    const wanted = { asked: args[0] as string, from, port };
    return source.kind === 'session' ? showSession(invocation, wanted) : showFile(invocation, wanted);
  }
  if (port !== undefined)
    throw usageError('--gateway-port is for the viewer, which needs a terminal; this prints JSON lines');
  if (source.kind === 'session') return printSession(invocation, from);
  const printFile = async (client: BusClient | null) => {
    const { printJournal } = await import('../../journals/inspection-lines.ts');
    return printJournal(await source.open(client), from);
  };
  if (!(await needsBus(invocation, [source]))) return printFile(null);
  return withBusOnce(invocation, false, ({ client }) => printFile(client));
};

/** Prints the stored records, then new ones until the run ends. Exits with `EXIT.detached` if it is stopped first. */
function printSession(invocation: Invocation, from: number | undefined): Promise<ExitCode> {
  const { flags, args } = invocation;
  const stays = flags.on('follow');
  let inspector: SessionInspector | null = null;
  return withBus(invocation, false, async (bus) => {
    const session = await findSession(bus.client, args[0] as string);
    const newest = await session.newest();
    if (newest === null) throw new SessionNotFoundError(session.id);
    const isOver = !bus.hosted || hasEnded(newest.state);
    // `--from` may name the next record if it can still come.
    const last = isOver && !stays ? newest.n : newest.n + 1;
    if (inspector === null && from !== undefined && from > last) throw recordNotThere(`--from ${from}`, newest.n, true);
    const [{ SessionInspector }, { printInspection }] = await Promise.all([
      import('@coxswain/session'),
      import('../../journals/inspection-lines.ts'),
    ]);
    // A reopened bus continues after the last printed record.
    inspector ??= new SessionInspector(session.id, { from });
    const stop = stopSignal();
    const leaving = new AbortController();
    void stop.promise.then(() => leaving.abort());
    try {
      const signal = AbortSignal.any([leaving.signal, bus.gone]);
      for await (const record of session.records({ from: inspector.n + 1, signal })) {
        await printInspection(inspector, record);
        // No further record comes without a host, or after the run.
        if (!stays && record.n >= newest.n && (!bus.hosted || hasEnded(record.state))) return EXIT.ok;
      }
      if (!leaving.signal.aborted) bus.gone.throwIfAborted();
      return EXIT.detached;
    } finally {
      stop.release();
    }
  });
}
