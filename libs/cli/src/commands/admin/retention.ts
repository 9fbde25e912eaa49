/** `cox admin retention`. */
import { cutGraphemes, TenantId } from '@coxswain/protocol';
import type { DeletePorts, SweepOptions } from '@coxswain/session';
import { withAdminPorts, withBusOnce } from '../../instance/mod.ts';
import { deletedLine, deletingActor } from '../../journals/mod.ts';
import { CliError, type CommandRun, EXIT, readRetention, usageError } from '../../line/mod.ts';
import { askYes, counted, isInteractive, standardStreams } from '../../terminal/mod.ts';

const MAX = 1_000;

/**
 * Deletes expired sessions and unused files on the whole bus. Exits 1 if a due session could not be deleted, or if the
 * user declines.
 */
export const run: CommandRun = async (invocation) => {
  const { flags, env } = invocation;
  const kept = flags.inOrder(['keep']).map(({ value }) => value);
  const times = keptTimes(kept);
  const keptMs = (tenant: string) => times.get(tenant) ?? times.get(OF_ALL) ?? null;
  const max = flags.whole('max', { min: 1, max: 1_000_000 }) ?? MAX;
  const dryRun = flags.on('dry-run');
  const json = flags.on('json');
  const sure = dryRun || flags.on('yes');
  const none = kept.find((text) => /(^|=)0+[hdw]$/.test(text));
  if (none !== undefined && !sure && !isInteractive())
    throw usageError(
      `--keep ${none} deletes every ended session, and no terminal can confirm it: give --yes, or keep 1h or more`,
    );
  return withBusOnce(invocation, false, (bus) =>
    withAdminPorts(bus, async (ports) => {
      refuseUnknown([...times.keys()], await ports.purge.tenants(), sure);
      const options = { keptMs, max, dryRun, by: deletingActor(env) };
      if (kept.length > 0 && !sure && isInteractive() && !(await isConfirmed(ports, options))) {
        standardStreams.err('nothing was deleted\n');
        return EXIT.error;
      }
      const { sweepBlobs, sweepSessions } = await import('@coxswain/session');
      let deleted = 0;
      let refused = 0;
      for await (const { ref, deletion } of sweepSessions(ports, options)) {
        if (deletion.status === 'refused') refused++;
        else deleted++;
        const { out, err } = deletedLine(ref.sessionId, ref.tenant, deletion, json);
        standardStreams.out(out);
        standardStreams.err(err);
      }
      const files = await sweepBlobs(ports.purge, { dryRun });
      const more = deleted >= max;
      if (json)
        standardStreams.out(
          `${JSON.stringify({ type: 'swept', dry_run: dryRun, sessions: deleted, refused, more, files })}\n`,
        );
      const would = dryRun ? 'would be ' : '';
      standardStreams.err(
        `${counted(deleted, 'session')} and ${counted(files.deleted, 'file')} ${would}deleted${more ? '; there may be more: run it again' : ''}\n`,
      );
      if (kept.length === 0)
        standardStreams.err(
          'no retention is configured: sessions are deleted only by age with --keep, such as --keep 30d\n',
        );
      return refused > 0 ? EXIT.error : EXIT.ok;
    }),
  );
};

/**
 * Rejects unknown tenant names. With a misspelled name, the time of all other tenants would apply to the sessions it
 * should keep. With `--yes` or `--dry-run`, only prints the unknown names.
 */
function refuseUnknown(named: readonly string[], tenants: readonly string[], sure: boolean): void {
  const unknown = named.filter((tenant) => tenant !== OF_ALL && !tenants.includes(tenant));
  if (unknown.length === 0) return;
  const there =
    tenants.length === 0 ? 'no tenant has sessions' : `tenants with sessions: ${tenants.slice(0, 16).join(', ')}`;
  const message = `--keep names ${unknown.join(', ')}, and no such tenant has sessions; ${there}`;
  if (!sure) throw new CliError(EXIT.error, 'tenant_not_found', `tenant_not_found: ${message}; --yes ignores this`);
  standardStreams.err(`${message}\n`);
}

/** Asks for confirmation with the number of due sessions of each tenant. If none is due, it does not ask. */
async function isConfirmed(ports: DeletePorts, options: SweepOptions): Promise<boolean> {
  const { sweepSessions } = await import('@coxswain/session');
  const due = new Map<string, number>();
  for await (const { ref, deletion } of sweepSessions(ports, { ...options, dryRun: true }))
    if (deletion.status === 'would_delete') due.set(ref.tenant, (due.get(ref.tenant) ?? 0) + 1);
  if (due.size === 0) return true;
  const what = [...due].map(([tenant, count]) => `${counted(count, 'session')} of ${tenant}`);
  return askYes(`Delete ${what.join(', ')} for good?`);
}

/** The key for tenants without a time of their own. No tenant has an empty name. */
const OF_ALL = '';

/** The retention times in `--keep`, in ms, keyed by tenant. */
function keptTimes(given: readonly string[]): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  for (const text of given) {
    const at = text.indexOf('=');
    const tenant = at < 0 ? OF_ALL : text.slice(0, at);
    const ms = readRetention(text.slice(at + 1));
    if (ms === null || (at >= 0 && !TenantId.safeParse(tenant).success))
      throw usageError(
        `--keep takes hours, days or weeks, such as 12h, 90d or 12w, or TENANT=90d, not "${cutGraphemes(text, 100)}"`,
      );
    if (times.has(tenant)) throw usageError(`--keep is given twice for ${at < 0 ? 'all tenants' : tenant}`);
    times.set(tenant, ms);
  }
  return times;
}
