/** `cox session list`. */
import { describeState, hasEnded, printable, topState, type WireListedSession } from '@coxswain/client';
import { JOURNAL_STREAMS, type SessionStatus } from '@coxswain/protocol';
import { type OpenBus, sessionStatus, withBus } from '../../instance/mod.ts';
import { pageOfSessions } from '../../journals/mod.ts';
import { CliError, type CommandRun, EXIT } from '../../line/mod.ts';
import { ago, counted, personaWaitText, standardStreams, table, waitsFor } from '../../terminal/mod.ts';

const ASKED_SIDE_BY_SIDE = 16;

const LIMIT = 100;
const LIMIT_MAX = 100_000;

/** Lists sessions, the most recently changed first. Lists 100 by default, and prints how to list the others. */
export const run: CommandRun = (invocation) => {
  const { flags } = invocation;
  const limit = flags.whole('limit', { min: 1, max: LIMIT_MAX }) ?? LIMIT;
  const json = flags.on('json');
  return withBus(invocation, false, async (bus) => {
    const wanted = { limit, after: flags.text('after'), deleted: flags.on('deleted') };
    const { items, left, last, unlisted, total } = await pageOfSessions(bus.client.wire, bus.client, wanted);
    if (total === 0) await requireStreams(bus);
    const listed: Listed[] = [];
    for (let start = 0; start < items.length; start += ASKED_SIDE_BY_SIDE) {
      const some = items.slice(start, start + ASKED_SIDE_BY_SIDE);
      listed.push(...(await Promise.all(some.map((listing) => completed(bus, listing)))));
    }
    if (json) {
      for (const listing of listed) standardStreams.out(`${JSON.stringify(listing)}\n`);
    } else if (items.length === 0 && wanted.after === undefined) {
      standardStreams.err('no sessions; start one with cox run "…" --model provider/name\n');
    } else {
      standardStreams.out(table(listed.map(rowOf)));
    }
    if (left > 0 && last !== undefined) {
      if (json) standardStreams.out(`${JSON.stringify({ type: 'more', sessions: left, after: last })}\n`);
      standardStreams.err(`${counted(left, 'more session')}: add --after ${last}\n`);
    }
    if (unlisted > 0) standardStreams.err(`${counted(unlisted, 'deleted session')}: list with --deleted\n`);
    return EXIT.ok;
  });
};

const JOURNALS: ReadonlySet<string> = new Set(JOURNAL_STREAMS);

/**
 * Reports missing streams of a bus that the user named. The hosts of this machine create their streams when they start.
 */
async function requireStreams({ address, client }: OpenBus): Promise<void> {
  if (!address || address.source === 'state-dir') return;
  const { streams } = await client.busInfo();
  const missing = streams.find(({ name, present }) => !present && JOURNALS.has(name));
  if (!missing) return;
  const message = `streams_missing: this bus has no stream ${missing.name}: create the streams with cox admin streams, or start a session host that may create streams`;
  throw new CliError(EXIT.error, 'streams_missing', message);
}

/** A longer journal, in records, is not read only for the name of the persona. */
const READ_FOR_ITS_PERSONA_MAX = 256;

/**
 * A session's listing, completed with facts that its newest record does not have. `persona` is null if it is unknown.
 */
type Listed = Omit<WireListedSession, 'details'> & { readonly persona: string | null } & Partial<
    Pick<SessionStatus, 'suspended' | 'wakes_at' | 'waiting_for_persona'>
  >;

// The persona, the stop reason and the awaited signal or time can be in earlier records than the newest.
async function completed(bus: OpenBus, { details, ...listing }: WireListedSession): Promise<Listed> {
  if (listing.deleted || listing.unreadable !== undefined) return { ...listing, persona: null };
  const ended = hasEnded(listing.state);
  if (details && ended) return { ...listing, persona: details.persona };
  const isPartial = WAITS.has(topState(listing.state)) || (ended && listing.stop_reason === null);
  // Without a host, the status needs the whole journal. A long journal is not read only for the name of the persona.
  if (!bus.hosted && !isPartial && listing.n > READ_FOR_ITS_PERSONA_MAX) return { ...listing, persona: null };
  const status = await statusInList(bus, listing.session_id);
  if (!status) return { ...listing, persona: null };
  const { persona, suspended, wakes_at, waiting_for_persona } = status;
  return {
    ...listing,
    persona,
    ...(ended ? { stop_reason: listing.stop_reason ?? status.stop_reason } : {}),
    ...(WAITS.has(topState(listing.state)) ? { suspended, wakes_at } : {}),
    ...(waiting_for_persona && !ended ? { waiting_for_persona } : {}),
  };
}

/** A session that was deleted meanwhile, or has an unreadable journal, must not hide the others. */
async function statusInList(bus: OpenBus, sessionId: string): Promise<SessionStatus | null> {
  try {
    return await sessionStatus(bus, bus.client.session(sessionId));
  } catch (error) {
    if (typeof (error as { readonly code?: unknown }).code !== 'string' || bus.gone.aborted) throw error;
    return null;
  }
}

function rowOf(one: Listed): string[] {
  const { session_id, persona, state, stop_reason, n, at, unreadable, deleted } = one;
  if (unreadable !== undefined) return [session_id, '', 'unreadable', '', unreadable];
  return [
    session_id,
    printable(persona ?? ''),
    `${describeState(state, stop_reason)}${waiting(one)}`,
    ago(at),
    `${counted(n, 'record')}${howDeleted(deleted)}`,
  ];
}

function howDeleted(deleted: Listed['deleted']): string {
  if (!deleted) return '';
  const { by, reason } = deleted;
  return `${by === null ? '' : `, by ${printable(by)}`}${reason === null ? '' : ` (${printable(reason)})`}`;
}

const WAITS: ReadonlySet<string> = new Set(['suspended', 'daemon_idle']);

function waiting({ suspended, wakes_at, waiting_for_persona }: Listed): string {
  if (waiting_for_persona) return `, ${personaWaitText(waiting_for_persona)}`;
  if (suspended) return waitsFor(suspended);
  return wakes_at ? `, until ${wakes_at}` : '';
}
