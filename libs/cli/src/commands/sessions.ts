/** `cox sessions`. */
import { describeState, hasEnded, type SessionListing } from '@coxswain/client';
import { type OpenBus, withBus } from '../instance/open-bus.ts';
import { sessionStatus } from '../instance/session-status.ts';
import { EXIT } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { standardStreams } from '../terminal/streams.ts';
import { ago, table } from '../terminal/table.ts';

const ASKED_SIDE_BY_SIDE = 16;

/** Lists all sessions, the newest first. */
export const run: CommandRun = (invocation) =>
  withBus(invocation, false, async (bus) => {
    const listed = (await bus.client.sessions()).reverse();
    for (let start = 0; start < listed.length; start += ASKED_SIDE_BY_SIDE) {
      const some = listed.slice(start, start + ASKED_SIDE_BY_SIDE);
      listed.splice(start, some.length, ...(await Promise.all(some.map((listing) => withReason(bus, listing)))));
    }
    if (invocation.flags.on('json')) {
      for (const listing of listed) standardStreams.out(`${JSON.stringify(listing)}\n`);
    } else if (listed.length === 0) {
      standardStreams.err('no sessions yet: cox run "…" --model provider/name\n');
    } else {
      const rows = listed.map(({ session_id, state, stop_reason, n, at, unreadable }) =>
        unreadable === undefined
          ? [session_id, describeState(state, stop_reason), ago(at), `${n} records`]
          : [session_id, 'unreadable', '', unreadable],
      );
      standardStreams.out(table(rows));
    }
    return EXIT.ok;
  });

// A command after the end of a run makes a newer record, which does not say how the run ended.
async function withReason(bus: OpenBus, listing: SessionListing): Promise<SessionListing> {
  if (!hasEnded(listing.state) || listing.stop_reason !== null) return listing;
  const { stop_reason } = await sessionStatus(bus, bus.client.session(listing.session_id));
  return { ...listing, stop_reason };
}
