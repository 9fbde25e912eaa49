/** `cox sessions`. */
import { describeState, hasEnded, printable, type SessionListing, topState } from '@coxswain/client';
import type { SessionStatus } from '@coxswain/protocol';
import { type OpenBus, withBus } from '../instance/open-bus.ts';
import { sessionStatus } from '../instance/session-status.ts';
import { EXIT } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { waitsFor } from '../terminal/event-lines.ts';
import { standardStreams } from '../terminal/streams.ts';
import { ago, table } from '../terminal/table.ts';

const ASKED_SIDE_BY_SIDE = 16;

/** Lists all sessions, the newest first. */
export const run: CommandRun = (invocation) =>
  withBus(invocation, false, async (bus) => {
    const all: Listed[] = (await bus.client.sessions()).reverse();
    const listed = invocation.flags.on('deleted') ? all : all.filter(({ deleted }) => !deleted);
    for (let start = 0; start < listed.length; start += ASKED_SIDE_BY_SIDE) {
      const some = listed.slice(start, start + ASKED_SIDE_BY_SIDE);
      listed.splice(start, some.length, ...(await Promise.all(some.map((listing) => completed(bus, listing)))));
    }
    if (invocation.flags.on('json')) {
      for (const listing of listed) standardStreams.out(`${JSON.stringify(listing)}\n`);
    } else if (listed.length === 0) {
      standardStreams.err('no sessions yet: cox run "…" --model provider/name\n');
    } else {
      const rows = listed.map(({ session_id, state, stop_reason, n, at, unreadable, suspended, wakes_at, deleted }) =>
        unreadable === undefined
          ? [
              session_id,
              `${describeState(state, stop_reason)}${waiting(suspended, wakes_at)}`,
              ago(at),
              `${n} records${howDeleted(deleted)}`,
            ]
          : [session_id, 'unreadable', '', unreadable],
      );
      standardStreams.out(table(rows));
    }
    const unlisted = all.length - listed.length;
    if (unlisted > 0) standardStreams.err(`${unlisted} deleted: cox sessions --deleted\n`);
    return EXIT.ok;
  });

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
