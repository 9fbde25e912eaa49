/** `cox cancel-call`. */
import type { SentCommand, Session } from '@coxswain/client';
import { sessionStatus } from '../instance/session-status.ts';
import { CliError, EXIT, type ExitCode } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { chooseCall } from '../run/decide.ts';
import { acceptedAtMost, sendToSession } from '../run/send-to-session.ts';
import { standardStreams } from '../terminal/streams.ts';

const GRACE_DEFAULT_MS = 5_000;
const GRACE_MAX_MS = 600_000;
/** On top of the grace that the call has: for the host, the journal and the way here. */
const SLACK_MS = 15_000;

/** Ends one call and says how that went. */
export const run: CommandRun = (invocation) => {
  const { flags, args } = invocation;
  const timeoutMs = flags.whole('timeout-ms', { min: 0, max: GRACE_MAX_MS });
  const reason = flags.text('reason');
  return sendToSession(
    invocation,
    async (session, options, bus) => {
      const { calls } = await sessionStatus(bus, session);
      const open = calls.filter(({ status }) => status === 'running' || status === 'parked');
      const callId = chooseCall(args[1], open, 'not_found');
      const injectReminder = flags.on('no-reminder') ? false : undefined;
      return session.cancelCall(callId, { ...acceptedAtMost(options), reason, injectReminder, graceMs: timeoutMs });
    },
    (session, sent) => reportOutcome(session, sent, (timeoutMs ?? GRACE_DEFAULT_MS) + SLACK_MS, flags.on('json')),
  );
};

async function reportOutcome(session: Session, sent: SentCommand, withinMs: number, json: boolean): Promise<ExitCode> {
  const signal = AbortSignal.timeout(withinMs);
  for await (const record of session.records({ from: sent.receipt?.n, signal })) {
    for (const event of record.events) {
      if (event.type !== 'control_outcome' || event.command_id !== sent.commandId) continue;
      const { session_id, n, at } = record;
      standardStreams.out(
        json
          ? `${JSON.stringify({ session_id, n, at, ...event })}\n`
          : `${session_id}: ${event.tool ?? event.target}: ${event.status}${whyOf(event)}\n`,
      );
      return event.status === 'cancelled' || event.status === 'already_cancelled' ? EXIT.ok : EXIT.error;
    }
  }
  throw new CliError(EXIT.error, 'timeout', `no outcome was recorded within ${withinMs} ms`);
}

function whyOf({ status, reason }: { readonly status: string; readonly reason?: string | undefined }): string {
  if (reason) return ` (${reason})`;
  return status === 'not_found' ? ' (the session has no such call; cox session show lists those that are open)' : '';
}
