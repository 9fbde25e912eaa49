/** `cox delete`. */
import { BOUNDS, SessionId, sessionRef, TenantId } from '@coxswain/protocol';
import { type Deletion, deleteSession, sweepBlobs } from '@coxswain/session';
import { withAdminPorts } from '../instance/admin-ports.ts';
import { type OpenBus, withBusOnce } from '../instance/open-bus.ts';
import { CliError, EXIT, type ExitCode, usageError } from '../line/cli-error.ts';
import type { CommandRun, Invocation } from '../line/command-spec.ts';
import { deletedLine, whoDeletes } from '../run/deleted-line.ts';
import { askYes } from '../terminal/ask-yes.ts';
import { isInteractive, standardStreams } from '../terminal/streams.ts';

const SESSIONS_MAX = 1_000;

/** Deletes sessions for good. Each is told of; exits 1 where one was not deleted. */
export const run: CommandRun = async (invocation) => {
  const { flags } = invocation;
  const ids = idsOf(invocation);
  const tenant = flags.text('tenant');
  if (tenant !== undefined && !TenantId.safeParse(tenant).success)
    throw usageError(`--tenant takes 1 to 64 characters of A-Z a-z 0-9 _ -, not "${tenant.slice(0, 80)}"`);
  if (Buffer.byteLength(flags.text('reason') ?? '') > BOUNDS.reasonMaxBytes)
    throw usageError(`--reason may have at most ${BOUNDS.reasonMaxBytes} bytes`);
  const dryRun = flags.on('dry-run');
  if (!dryRun && !flags.on('yes') && !isInteractive())
    throw usageError('nobody can be asked here whether to delete for good: give --yes');
  return withBusOnce(invocation, false, async (bus) => {
    const whose = tenant ?? bus.client.tenant;
    if (!dryRun && !flags.on('yes') && !(await isConfirmed(ids, whose))) {
      standardStreams.err('nothing was deleted\n');
      return EXIT.error;
    }
    return deleteAll(invocation, bus, ids, whose);
  });
};

function idsOf({ args }: Invocation): readonly string[] {
  for (const id of args) {
    // A whole id: what is deleted for good is not guessed from its beginning.
    if (!SessionId.safeParse(id).success)
      throw new CliError(
        EXIT.usage,
        'invalid_id',
        `invalid_id: "${id.slice(0, 80)}" is no session’s id: 1 to 64 characters of A-Z a-z 0-9 _ -`,
      );
  }
  if (args.length > SESSIONS_MAX) throw usageError(`at most ${SESSIONS_MAX} sessions at once`);
  return [...new Set(args)];
}

function isConfirmed(ids: readonly string[], tenant: string): Promise<boolean> {
  const what = ids.length === 1 ? `the session ${ids[0]}` : `${ids.length} sessions`;
  const of = tenant === 'default' ? '' : ` of ${tenant}`;
  return askYes(`Delete ${what}${of} for good?`);
}

async function deleteAll(
  { flags, env }: Invocation,
  bus: OpenBus,
  ids: readonly string[],
  tenant: string,
): Promise<ExitCode> {
  const options = {
    by: whoDeletes(env),
    reason: flags.text('reason'),
    unreadable: flags.on('unreadable'),
    dryRun: flags.on('dry-run'),
  };
  let refused = 0;
  await withAdminPorts(bus, async (ports) => {
    const blobs = new Set<string>();
    for (const id of ids) {
      const deletion: Deletion = await deleteSession(ports, sessionRef(id, tenant), options);
      if (deletion.status === 'refused') refused++;
      else if (deletion.status !== 'would_delete') for (const sha256 of deletion.blobs) blobs.add(sha256);
      const { out, err } = deletedLine(id, tenant, deletion, flags.on('json'));
      standardStreams.out(out);
      standardStreams.err(err);
    }
    const swept = await sweepBlobs(ports.purge, { only: blobs });
    if (swept.left > 0)
      standardStreams.err(
        `${swept.left} files are too new to say that nobody else uses them: cox sweep, a day from now\n`,
      );
  });
  return refused > 0 ? EXIT.error : EXIT.ok;
}
