/** `cox cancel-call`. */
import { type Session, sentCommand } from '@coxswain/client';
import { BOUNDS, type CallCancellation, cancellationIn } from '@coxswain/protocol';
import { sessionStatus } from '../instance/mod.ts';
import { CliError, type CommandRun, EXIT, type ExitCode } from '../line/mod.ts';
import { chooseCall, type SentResult, sendToSession } from '../run/mod.ts';
import { standardStreams } from '../terminal/mod.ts';

const GRACE_MAX_MS = 600_000;
/** Time for the host, the journal and the transport, in addition to the call's grace period, in ms. */
const SLACK_MS = 15_000;

/**
 * Cancels one call and prints the outcome. Exits 0 for `cancelled` and `already_cancelled`, 1 for any other outcome.
 */
export const run: CommandRun = (invocation) => {
  const { flags, args } = invocation;
  const graceMs = flags.whole('timeout-ms', { min: 0, max: GRACE_MAX_MS });
  const reason = flags.text('reason');
  return sendToSession(
    invocation,
    async (session, options, bus) => {
      const { calls } = await sessionStatus(bus, session);
      const open = calls.filter(({ status }) => status === 'running' || status === 'parked');
      const body = {
        call_id: chooseCall(args[1], open, 'not_found'),
        ...(reason === undefined ? {} : { reason }),
        ...(flags.on('no-reminder') ? { inject_reminder: false } : {}),
        ...(graceMs === undefined ? {} : { timeout_ms: graceMs }),
      };
      const { id, signal } = options;
      // Without a host the command is only stored. The next host determines the outcome.
      const timeoutMs = (graceMs ?? BOUNDS.abortGraceMs) + SLACK_MS;
      const wait = bus.hosted ? 'outcome' : 'stored';
      const sent = await session.wire.send('cancel_call', body, { id, signal, wait, timeoutMs });
      return { ...sentCommand(sent), cancellation: sent.cancellation };
    },
    (session, sent) => reportOutcome(session, sent, flags.on('json')),
  );
};

async function reportOutcome(session: Session, sent: SentResult, json: boolean): Promise<ExitCode> {
  const cancellation = sent.cancellation ?? (await recordedOutcome(session, sent.commandId));
  const { outcome, call_id, tool } = cancellation;
  standardStreams.out(
    json
      ? `${JSON.stringify({ session_id: session.id, command_id: sent.commandId, ...cancellation })}\n`
      : `${session.id}: ${tool ?? call_id}: ${outcome}${whyOf(cancellation)}\n`,
  );
  return outcome === 'cancelled' || outcome === 'already_cancelled' ? EXIT.ok : EXIT.error;
}

/** Reads the outcome of a repeated command from the journal, after its call has ended. */
async function recordedOutcome(session: Session, commandId: string): Promise<CallCancellation> {
  for await (const { record } of session.journal()) {
    const found = cancellationIn(record, commandId);
    if (found) return found;
  }
  throw new CliError(EXIT.error, 'timeout', `the session has not recorded the outcome of ${commandId} yet`);
}

function whyOf({ outcome, reason, tool }: CallCancellation): string {
  if (reason) return ` (${reason})`;
  if (outcome !== 'not_found') return '';
  return tool === null
    ? ' (the session has no such call; cox session show lists the open calls)'
    : ' (the call had ended before)';
}
