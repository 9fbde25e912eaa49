/** Formats the queued messages and the shown reminders of a session. */
import { visibleLine } from '@coxswain/client';
import type { SessionStatus } from '@coxswain/protocol';
import { ago, table } from './table.ts';

type Status = Pick<SessionStatus, 'pending' | 'reminders'>;
type Pending = SessionStatus['pending'][number];
type Reminder = SessionStatus['reminders'][number];

/** In characters; `--json` prints the whole text. */
const BODY_SHOWN_CHARS = 200;

/** One row for each message and reminder, with its id; empty if there is none. */
export function pendingTable({ pending, reminders }: Status): string {
  const rows = [...pending.map(pendingRow), ...reminders.map(shownRow)];
  return rows.length === 0 ? '' : table(rows);
}

/** The same for the interactive view, without the last line break. */
export function pendingText(status: Status): string {
  return pendingTable(status).trimEnd() || 'no messages are queued';
}

function pendingRow(one: Pending): string[] {
  return [
    one.command_id,
    one.kind,
    one.mode ?? '',
    one.actor?.name ?? '',
    ago(one.at),
    traits(one),
    visibleLine(one.body, BODY_SHOWN_CHARS),
  ];
}

function shownRow(one: Reminder): string[] {
  return [
    one.command_id,
    'reminder',
    'shown',
    one.actor?.name ?? '',
    '',
    traits(one),
    visibleLine(one.body, BODY_SHOWN_CHARS),
  ];
}

/** The properties that differ from the defaults, named like the fields. */
function traits(one: Pending | Reminder): string {
  const ttl = 'ttl_left' in one ? one.ttl_left : one.ttl_turns;
  return [
    one.dedupe_key !== undefined && `key=${visibleLine(one.dedupe_key, BODY_SHOWN_CHARS)}`,
    one.tags && one.tags.length > 0 && `tags=${one.tags.map((tag) => visibleLine(tag, BODY_SHOWN_CHARS)).join(',')}`,
    ttl !== undefined && `turns=${ttl}`,
    one.preserve_on_compact && 'preserved',
    one.propagate && one.propagate !== 'session' && `propagate=${one.propagate}`,
    one.role_hint && one.role_hint !== 'system' && `role=${one.role_hint}`,
    'replaced_by' in one && `replaced_by=${one.replaced_by}`,
  ]
    .filter(Boolean)
    .join(' ');
}
