/** `cox session delete`. */
import { BOUNDS, cutGraphemes, SessionId, sessionRef } from '@coxswain/protocol';
import { withAdminPorts, withBusOnce } from '../../instance/mod.ts';
import { deletedLine, deleteSessions, deletingActor } from '../../journals/mod.ts';
import { CliError, type CommandRun, EXIT, type Invocation, usageError } from '../../line/mod.ts';
import { askYes, counted, isInteractive, standardStreams } from '../../terminal/mod.ts';

const SESSIONS_MAX = 1_000;

/**
 * Deletes sessions permanently, in the tenant of the key or of `--tenant`. The admin's key works for every tenant.
 * Prints one line per session, and prints sessions that cannot be deleted before it asks for confirmation. Exits 1 if a
 * session was not deleted, or if the user declines.
 */
export const run: CommandRun = async (invocation) => {
  const { flags, env } = invocation;
  const ids = idsOf(invocation);
  if (Buffer.byteLength(flags.text('reason') ?? '') > BOUNDS.reasonMaxBytes)
    throw usageError(`--reason may have at most ${BOUNDS.reasonMaxBytes} bytes`);
  const dryRun = flags.on('dry-run');
  const asks = !dryRun && !flags.on('yes');
  if (asks && !isInteractive()) throw usageError('no terminal can confirm the permanent deletion: give --yes');
  const options = { by: deletingActor(env), reason: flags.text('reason'), unreadable: flags.on('unreadable'), dryRun };
  return withBusOnce(invocation, false, (bus) =>
    withAdminPorts(bus, async (ports) => {
      const { tenant } = bus.client;
      const refs = ids.map((id) => sessionRef(id, tenant));
      const { status, refused, blobs } = await deleteSessions(ports, refs, {
        options,
        confirm: asks
          ? (some) =>
              isConfirmed(
                some.map(({ sessionId }) => sessionId),
                tenant,
              )
          : undefined,
        report({ sessionId }, deletion) {
          const { out, err } = deletedLine(sessionId, tenant, deletion, flags.on('json'));
          standardStreams.out(out);
          standardStreams.err(err);
        },
      });
      if (status === 'declined') {
        standardStreams.err('nothing was deleted\n');
        return EXIT.error;
      }
      const { sweepBlobs } = await import('@coxswain/session');
      const { left } = await sweepBlobs(ports.purge, { only: blobs });
      if (left > 0)
        standardStreams.err(
          `${counted(left, 'file')} ${left === 1 ? 'is' : 'are'} too new to prove that no other session uses ${left === 1 ? 'it' : 'them'}: run cox admin retention in a day\n`,
        );
      return refused > 0 ? EXIT.error : EXIT.ok;
    }),
  );
};

function idsOf({ args }: Invocation): readonly string[] {
  for (const id of args) {
    // Requires whole ids: a permanent deletion does not guess a session from a prefix.
    if (!SessionId.safeParse(id).success)
      throw new CliError(
        EXIT.usage,
        'invalid_id',
        `invalid_id: "${cutGraphemes(id, 80)}" is not a session id: 1 to 64 characters of A-Z a-z 0-9 _ -`,
      );
  }
  if (args.length > SESSIONS_MAX) throw usageError(`at most ${SESSIONS_MAX} sessions at once`);
  return [...new Set(args)];
}

function isConfirmed(ids: readonly string[], tenant: string): Promise<boolean> {
  const what = ids.length === 1 ? `the session ${ids[0]}` : counted(ids.length, 'session');
  const of = tenant === 'default' ? '' : ` of ${tenant}`;
  return askYes(`Delete ${what}${of} for good?`);
}
