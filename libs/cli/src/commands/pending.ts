/** `cox pending`. */
import { printable } from '@coxswain/client';
import type { SessionStatus } from '@coxswain/protocol';
import { withBus } from '../instance/open-bus.ts';
import { findSession } from '../instance/resolve-session.ts';
import { sessionStatus } from '../instance/session-status.ts';
import { EXIT } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { standardStreams } from '../terminal/streams.ts';
import { ago, table } from '../terminal/table.ts';

type Pending = SessionStatus['pending'][number];
type Reminder = SessionStatus['reminders'][number];

const BODY_SHOWN_CHARS = 200;

/** Lists what a session has accepted and not yet delivered, and the reminders that its prompts show. */
export const run: CommandRun = (invocation) =>
  withBus(invocation, false, async (bus) => {
    const session = await findSession(bus.client, invocation.args[0] as string);
    const { pending, reminders } = await sessionStatus(bus, session);
    if (invocation.flags.on('json')) {
      for (const entry of pending) standardStreams.out(`${JSON.stringify({ session_id: session.id, ...entry })}\n`);
      for (const entry of reminders)
        standardStreams.out(`${JSON.stringify({ session_id: session.id, kind: 'reminder', ...entry })}\n`);
      return EXIT.ok;
    }
    if (pending.length === 0) standardStreams.err('nothing is pending\n');
    const rows = [...pending.map(pendingRow), ...reminders.map(shownRow)];
    if (rows.length > 0) standardStreams.out(table(rows));
    return EXIT.ok;
  });

function pendingRow(one: Pending): string[] {
  return [one.command_id, one.kind, one.mode ?? '', one.actor?.name ?? '', ago(one.at), traits(one), oneLine(one.body)];
}

function shownRow(one: Reminder): string[] {
  return [one.command_id, 'reminder', 'shown', one.actor?.name ?? '', '', traits(one), oneLine(one.body)];
}

/** What is unusual about it, in the words of its fields. */
function traits(one: Pending | Reminder): string {
  const ttl = 'ttl_left' in one ? one.ttl_left : one.ttl_turns;
  return [
    one.dedupe_key !== undefined && `key=${printable(one.dedupe_key)}`,
    one.tags && one.tags.length > 0 && `tags=${one.tags.map(printable).join(',')}`,
    ttl !== undefined && `turns=${ttl}`,
    one.preserve_on_compact && 'preserved',
    one.propagate && one.propagate !== 'session' && `propagate=${one.propagate}`,
    one.role_hint && one.role_hint !== 'system' && `role=${one.role_hint}`,
    'replaced_by' in one && `replaced_by=${one.replaced_by}`,
  ]
    .filter(Boolean)
    .join(' ');
}

/** A line for people, cut; --json has it whole. */
function oneLine(text: string): string {
  const line = printable(text.slice(0, BODY_SHOWN_CHARS)).replaceAll('\n', '⏎');
  return text.length > BODY_SHOWN_CHARS ? `${line}…` : line;
}
