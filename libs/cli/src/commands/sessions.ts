/** `cox sessions`. */
import { describeState, hasEnded, printable, type SessionListing, topState } from '@coxswain/client';
import { JOURNAL_STREAMS, type SessionStatus } from '@coxswain/protocol';
import { type OpenBus, withBus } from '../instance/open-bus.ts';
import { sessionStatus } from '../instance/session-status.ts';
import { CliError, EXIT } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { pageOf } from '../run/session-page.ts';
import { counted } from '../terminal/counted.ts';
import { waitsFor } from '../terminal/event-lines.ts';
import { standardStreams } from '../terminal/streams.ts';
import { ago, table } from '../terminal/table.ts';

const ASKED_SIDE_BY_SIDE = 16;

const LIMIT = 100;
const LIMIT_MAX = 100_000;

/** Lists sessions, the one that was written to last first; 100 of them, and says how the others are seen. */
export const run: CommandRun = (invocation) => {
  const { flags } = invocation;
  const limit = flags.whole('limit', { min: 1, max: LIMIT_MAX }) ?? LIMIT;
  const json = flags.on('json');
  return withBus(invocation, false, async (bus) => {
    const all = (await bus.client.sessions()).reverse();
    if (all.length === 0) await requireStreams(bus);
    const wanted = flags.on('deleted') ? all : all.filter(({ deleted }) => !deleted);
    const { items, left } = pageOf(wanted, { limit, after: flags.text('after') });
    const listed: Listed[] = [];
    for (let start = 0; start < items.length; start += ASKED_SIDE_BY_SIDE) {
      const some = items.slice(start, start + ASKED_SIDE_BY_SIDE);
      listed.push(...(await Promise.all(some.map((listing) => completed(bus, listing)))));
    }
    if (json) {
      for (const listing of listed) standardStreams.out(`${JSON.stringify(listing)}\n`);
    } else if (wanted.length === 0) {
      standardStreams.err('no sessions yet: cox run "…" --model provider/name\n');
    } else {
      const rows = listed.map(({ session_id, state, stop_reason, n, at, unreadable, suspended, wakes_at, deleted }) =>
        unreadable === undefined
          ? [
              session_id,
              `${describeState(state, stop_reason)}${waiting(suspended, wakes_at)}`,
              ago(at),
              `${counted(n, 'record')}${howDeleted(deleted)}`,
            ]
          : [session_id, 'unreadable', '', unreadable],
      );
      standardStreams.out(table(rows));
    }
    const last = listed.at(-1);
    if (left > 0 && last) {
      if (json) standardStreams.out(`${JSON.stringify({ type: 'more', sessions: left, after: last.session_id })}\n`);
      standardStreams.err(`${left} more: the same with --after ${last.session_id}\n`);
    }
    const unlisted = all.length - wanted.length;
    if (unlisted > 0) standardStreams.err(`${unlisted} deleted: cox sessions --deleted\n`);
    return EXIT.ok;
  });
};

const JOURNALS: ReadonlySet<string> = new Set(JOURNAL_STREAMS);

/** A bus that was named and has no streams has never had a session, or has lost them. Hosts of this machine are making theirs. */
async function requireStreams({ address, client }: OpenBus): Promise<void> {
  if (!address || address.source === 'state-dir') return;
  const { streams } = await client.busInfo();
  const missing = streams.find(({ name, present }) => !present && JOURNALS.has(name));
  if (!missing) return;
  const message = `streams_missing: this bus has no stream ${missing.name}: cox streams makes them, or a session host that may`;
  throw new CliError(EXIT.error, 'streams_missing', message);
}

/** A session's listing, with what its newest record alone does not say. */
type Listed = SessionListing & Partial<Pick<SessionStatus, 'suspended' | 'wakes_at'>>;

// A command after the end of a run makes a newer record, which does not say how the run ended; and one after a
// suspension makes one that does not say what it waits for.
async function completed(bus: OpenBus, listing: SessionListing): Promise<Listed> {
  const waits = WAITS.has(topState(listing.state));
  if (!waits && (!hasEnded(listing.state) || listing.stop_reason !== null)) return listing;
  const { stop_reason, suspended, wakes_at } = await sessionStatus(bus, bus.client.session(listing.session_id));
  return waits ? { ...listing, suspended, wakes_at } : { ...listing, stop_reason };
}

function howDeleted(deleted: Listed['deleted']): string {
  if (!deleted) return '';
  const { by, reason } = deleted;
  return `${by === null ? '' : `, by ${printable(by)}`}${reason === null ? '' : ` (${printable(reason).replaceAll('\n', ' ⏎ ')})`}`;
}

const WAITS: ReadonlySet<string> = new Set(['suspended', 'daemon_idle']);

function waiting(suspended: Listed['suspended'], wakesAt: Listed['wakes_at']): string {
  if (suspended) return waitsFor(suspended);
  return wakesAt ? `, until ${wakesAt}` : '';
}
