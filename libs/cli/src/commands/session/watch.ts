/** `cox session watch`. */

import { hasEnded, type Session } from '@coxswain/client';
import { findSession, withBus } from '../../instance/mod.ts';
import { type CommandRun, EXIT, recordNotThere } from '../../line/mod.ts';
import { exitCodeOf, followSession } from '../../run/mod.ts';
import { stopSignal } from '../../service/mod.ts';
import { chooseView, streamView } from '../../terminal/mod.ts';

/**
 * Follows a session to the end of its run, without taking part. Exits with the code of the run's stop reason, or with
 * `EXIT.detached` if the run did not end.
 */
export const run: CommandRun = (invocation) => {
  const { flags, args, env } = invocation;
  const from = flags.whole('from', { min: 1, max: Number.MAX_SAFE_INTEGER });
  let shown = 0;
  return withBus(invocation, false, async (bus) => {
    const session = await findSession(bus.client, args[0] as string);
    if (shown === 0 && from !== undefined && !flags.on('follow')) await requireRecord(session, from);
    const { view } = await chooseView(flags, env, streamView);
    const stop = stopSignal();
    const leaving = new AbortController();
    void stop.promise.then(() => leaving.abort());
    if (!bus.hosted) view.notice('no host runs this session now: these are the recorded events');
    try {
      const end = await followSession({
        session,
        view,
        participant: { approvalsOpen: () => 'go_on' },
        from: shown === 0 ? from : shown + 1,
        stay: flags.on('follow'),
        // No further record comes without a host.
        untilPresent: !bus.hosted,
        signal: AbortSignal.any([leaving.signal, bus.gone]),
        onShown: (n) => {
          shown = n;
        },
      });
      if (end.kind === 'left' && !leaving.signal.aborted) bus.gone.throwIfAborted();
      return end.kind === 'ended' ? exitCodeOf(end.result.stopReason) : EXIT.detached;
    } finally {
      stop.release();
      view.close();
    }
  });
};

/** Rejects the number of a record that can never come, so that the command does not wait for it. */
async function requireRecord(session: Session, from: number): Promise<void> {
  const newest = await session.newest();
  if (newest && hasEnded(newest.state) && from > newest.n) throw recordNotThere(`--from ${from}`, newest.n, true);
}
