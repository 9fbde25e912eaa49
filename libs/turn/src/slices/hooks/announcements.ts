/**
 * Announcements: consults at hook points that calls and seams do not wait for. They are about passed seams, approval requests,
 * permission decisions, thresholds of budgets, and pauses of personas.
 *
 * ANNOUNCE-1  Announcements are queued in the context and made in order, one consult at a time: consults never overlap.
 * ANNOUNCE-2  Calls and seams do not wait for announcements, except by ANNOUNCE-3, and except if hooks must first check
 *     a call or a queued message: that consult waits for the open one (ANNOUNCE-1). A turn starts, and a run ends,
 *     after all announcements: so the prompt of a turn has the reminders that hooks returned about the previous turn.
 * ANNOUNCE-3  A seam other than `loop_exit` waits if the queue is full.
 * ANNOUNCE-4  A pause of a persona is not announced if the queue is full, and neither is its end: the model step that the
 *     persona runs cannot wait for hooks.
 */

import {
  BUDGET_HOOK_PERCENTAGES,
  type EventOf,
  type HookPoint,
  type HookRegistration,
  type JsonObject,
  type SessionEvent,
} from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { isOfEdit } from '../approvals/edited-calls.ts';
import { rulingOn } from '../calls/ruling.ts';
import type { CallRow } from '../calls/state.ts';
import { callRow, toolPayload } from '../calls/table.ts';
import { hooksFor, isAsking, payloadHead, personaOfTurn, recordedPayload } from './consult.ts';
import { ANNOUNCED, type AnnouncedPoint, type Announcement } from './state.ts';

/** Length of the full queue (ANNOUNCE-3, ANNOUNCE-4). */
const WAITING_MAX = 32;

/** Whether the queue of announcements is full. Which seams then wait: ANNOUNCE-3. */
export function announcementsAreFull(context: SessionContext): boolean {
  return context.announcements.length >= WAITING_MAX;
}

/** Whether calls and seams do not wait for the hooks of a point (ANNOUNCE-2). */
export function isAnnounced(point: HookPoint): point is AnnouncedPoint {
  return ANNOUNCED.some((one) => one === point);
}

/** The queued announcements with that of an event, if registrations match it; otherwise the same list. */
export function withAnnouncement(context: SessionContext, event: SessionEvent): readonly Announcement[] {
  const { announcements } = context;
  if (context.hooks.length === 0) return announcements;
  const added = announcementOf(context, event);
  if (!added || matchingHooks(context, added).length === 0) return announcements;
  return announcementsAreFull(context) && exceeds(announcements, added) ? announcements : [...announcements, added];
}

// ANNOUNCE-4. The end of a pause that is still queued follows it, also beyond the bound.
function exceeds(announcements: readonly Announcement[], { point }: Announcement): boolean {
  if (point !== 'OnPersonaResumed') return point === 'OnPersonaPaused';
  const last = announcements.findLast((one) => one.point === 'OnPersonaPaused' || one.point === 'OnPersonaResumed');
  return last?.point !== 'OnPersonaPaused';
}

function announcementOf(context: SessionContext, event: SessionEvent): Announcement | null {
  switch (event.type) {
    case 'loop_checkpoint': {
      const { type: _, ...detail } = event;
      return { point: 'loop_checkpoint', target: event.kind, detail: detailOf(detail) };
    }
    case 'call_started': {
      const row = callRow(context, event.call_id);
      // A call in doubt runs again. Its permission was announced at its first start.
      return row && !row.in_doubt ? permissionReply(row, 'allow', allowedBy(context, row)) : null;
    }
    case 'approval_requested': {
      const { call_id, requested_by, question, expire_after_ms } = event;
      const more = {
        ...(question === undefined ? {} : { question }),
        ...(expire_after_ms === undefined ? {} : { expire_after_ms }),
      };
      const target = personaOfTurn(context);
      return { point: 'OnApprovalRequested', target, call_id, detail: { call_id, requested_by, ...more } };
    }
    case 'call_ended':
      return refusal(context, event);
    case 'budget_threshold': {
      const { budget, percent, used, limit } = event;
      const detail = { budget_pct: percent, usage: { budget, used, limit } };
      return { point: 'OnBudgetThreshold', target: personaOfTurn(context), detail };
    }
    case 'waiting_for_persona': {
      const { persona, version, reason } = event;
      const detail = { version, ...(reason === undefined ? {} : { reason }) };
      return event.why === 'paused' ? { point: 'OnPersonaPaused', target: persona, detail } : null;
    }
    case 'persona_wait_ended': {
      const { persona, version } = event;
      return event.why === 'paused' ? { point: 'OnPersonaResumed', target: persona, detail: { version } } : null;
    }
    default:
      return null;
  }
}

function detailOf(event: object): JsonObject {
  const { n: _, at_ms: __, ...detail } = event as JsonObject;
  return detail;
}

/** The announcement of a permission decision. */
function permissionReply(row: CallRow, decision: 'allow' | 'deny', by: string, reason?: string): Announcement {
  const why = reason === undefined ? {} : { reason };
  return { point: 'permission_replied', target: row.tool, call_id: row.call_id, detail: { decision, by, ...why } };
}

// If a permission_asked hook allowed the call, the rule is `granted_by`, which has the form `hook:<id>` already.
function allowedBy(context: SessionContext, row: CallRow): string {
  if (row.decided) return 'user';
  const { rule } = rulingOn(context, row);
  return row.granted_by === rule ? rule : `rule:${rule}`;
}

// No announcement if a PreToolUse hook denies a call: that does not count as a permission decision.
function refusal(context: SessionContext, { call_id, denial }: EventOf<'call_ended'>): Announcement | null {
  const row = denial && callRow(context, call_id);
  const { consult } = context;
  if (!row || (consult?.point === 'PreToolUse' && !isOfEdit(consult))) return null;
  const { by, rule, hook, reason } = denial;
  return permissionReply(
    row,
    'deny',
    by === 'user' || by === 'expiry' ? by : by === 'rule' ? `rule:${rule}` : `hook:${hook}`,
    reason,
  );
}

/** The matching registrations for an announcement, in order. */
function matchingHooks(context: SessionContext, announcement: Announcement): readonly HookRegistration[] {
  const { point, target, detail } = announcement;
  const hooks = hooksFor(context, point, target, payloadOf(context, announcement));
  if (point !== 'OnBudgetThreshold') return hooks;
  const percent = detail.budget_pct as number;
  return hooks.filter(({ pct }) => (pct === undefined ? BUDGET_HOOK_PERCENTAGES.includes(percent) : pct === percent));
}

function payloadOf(context: SessionContext, { point, call_id, detail }: Announcement): JsonObject {
  const row = call_id === undefined ? undefined : callRow(context, call_id);
  return { ...payloadHead(context, point), ...(row ? { tool: toolPayload(row) } : {}), ...detail };
}

/** States of a run in which announcements are made, before its teardown. */
const BEFORE_TEARDOWN =
  /^(assistant_streaming|function_execute|function_awaiting_approval|steering_check|daemon_idle|suspended)\./;

/** States of a teardown after its last seam, in which the rest of the announcements are made. */
const AFTER_LAST_SEAM =
  /^tearing_down\.(closing_tools|session_error|session_end|pre_finish|on_unsettled_detected|post_finish|ending)$/;

/**
 * The next event of the oldest announcement: the `hook_call` of its next registration, or `announced` if none
 * matches. Null if no announcement is queued, while hooks are called, and in states that make no announcements.
 */
export function nextAnnouncementEvent(context: SessionContext, leaf: string, effectId: string): SessionEvent | null {
  const [first] = context.announcements;
  if (!first) return null;
  const { consult } = context;
  if (consult !== null && !(isAnnounced(consult.point) && isAsking(context))) return null;
  if (!BEFORE_TEARDOWN.test(leaf) && !AFTER_LAST_SEAM.test(leaf)) return null;
  const { point } = first;
  const hook = matchingHooks(context, first)[consult?.hooks.length ?? 0];
  // The hook table has changed since the announcement was queued: no registration matches.
  if (!hook) return consult ? null : { type: 'announced', point };
  return {
    type: 'hook_call',
    hook: hook.id,
    point,
    effect_id: consult?.effect_id ?? effectId,
    ...recordedPayload(consult, consult?.payload ?? payloadOf(context, first)),
  };
}

/** Removes the oldest announcement, and closes its consult. */
export function announced(context: SessionContext): Partial<SessionContext> {
  return { announcements: context.announcements.slice(1), consult: null };
}
