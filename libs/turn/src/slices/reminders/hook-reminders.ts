/**
 * Reminders that hooks return. They are in the transcript at once; during a batch, after its results. No seam
 * delivers them, and they neither continue a run nor wake a session: otherwise a hook that always returns a reminder
 * would keep a session running. Then they live like reminders of senders (reminders.ts). With `audit_only` a reminder
 * is only in the journal.
 */
import {
  BOUNDS,
  type EventOf,
  type HookAnswer,
  type HookReminder,
  type ReminderMessage,
  type SessionEvent,
} from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import type { OpenConsult } from '../hooks/state.ts';
import type { PendingInjection } from '../injections/state.ts';
import { bodyBytes, reminderBytes } from '../injections/waiting.ts';
import { supersededBy } from './reminders.ts';

interface Draft {
  readonly hook: string;
  readonly reminder: HookReminder;
}

/**
 * The events of the reminders in a consult's answers, in order. Of reminders with the same dedupe key only the last counts,
 * at the position of the first. A reminder beyond a bound is dropped (`reminder_dropped`), but never one with
 * `audit_only`.
 */
export function hookReminders(
  context: SessionContext,
  { effect_id }: OpenConsult,
  answers: readonly HookAnswer[],
  atMs: number,
): SessionEvent[] {
  const drafts = lastOfEachKey(answers);
  if (drafts.length === 0) return [];
  let room = BOUNDS.remindersLiveMax - context.reminders.length;
  room -= context.pending.filter(({ kind }) => kind === 'remind').length;
  let roomBytes = BOUNDS.remindersLiveMaxBytes - reminderBytes(context);
  const at = new Date(atMs).toISOString();
  return drafts.flatMap(({ hook, reminder }, index): SessionEvent[] => {
    const command_id = `hook:${effect_id}:${index + 1}`;
    const isAudit = reminder.mode === 'audit_only';
    const replaced = supersededBy(context, { ...reminder, command_id });
    const bytes = isAudit ? 0 : bodyBytes(reminder) - (replaced ? bodyBytes(replaced) : 0);
    const hasRoom = isAudit || ((replaced !== undefined || room > 0) && bytes <= roomBytes);
    if (!hasRoom) return [{ type: 'reminder_dropped', hook, code: 'too_many_reminders' }];
    if (!isAudit && !replaced) room--;
    roomBytes -= bytes;
    const injected = injection(command_id, hook, reminder, at);
    return [injected, ...fired(context, injected, replaced?.command_id)];
  });
}

function lastOfEachKey(answers: readonly HookAnswer[]): Draft[] {
  const kept: Draft[] = [];
  for (const { hook, reminders = [] } of answers) {
    for (const reminder of reminders) {
      const { dedupe_key: key } = reminder;
      const place = key === undefined ? -1 : kept.findIndex((one) => one.reminder.dedupe_key === key);
      if (place < 0) kept.push({ hook, reminder });
      else kept[place] = { hook, reminder };
    }
  }
  return kept;
}

function injection(
  command_id: string,
  hook: string,
  { mode, ...fields }: HookReminder,
  at: string,
): EventOf<'reminder_injected'> {
  return {
    type: 'reminder_injected',
    command_id,
    ...fields,
    mode: mode ?? 'finish_step',
    direct: true,
    hook,
    at,
  };
}

function fired(
  context: SessionContext,
  { command_id, body, mode, role_hint, preserve_on_compact }: EventOf<'reminder_injected'>,
  superseded: string | undefined,
): SessionEvent[] {
  const tail = {
    ...(preserve_on_compact ? { preserve_on_compact: true as const } : {}),
    ...(mode === 'audit_only' ? { audit_only: true as const } : {}),
  };
  const message = reminderMessage({ body, reminder: { role_hint } });
  return [
    ...(superseded === undefined
      ? []
      : [{ type: 'reminder_deduped', command_id: superseded, by: command_id } as const]),
    { type: 'reminder_fired', command_id, seam: 'direct', turn: context.turn, message, ...tail },
  ];
}

/** A reminder as a message of the transcript. */
export function reminderMessage({
  body,
  reminder,
}: {
  readonly body: string;
  readonly reminder?: Pick<NonNullable<PendingInjection['reminder']>, 'role_hint'> | undefined;
}): ReminderMessage {
  const hint = reminder?.role_hint ?? 'system';
  return {
    role: 'reminder',
    content: [{ type: 'text', text: body }],
    ...(hint === 'system' ? {} : { role_hint: hint }),
  };
}
