/** The public view of a session: its status, and its summary for metrics. */
import type { SessionSummary } from '@coxswain/ports';
import { addUsage, type ParentLink, type SessionStatus, type StateValue, topState, usdOf } from '@coxswain/protocol';
import {
  budgetsOf,
  knownWindow,
  messageCount,
  personaWait,
  type SessionState,
  sessionTimer,
  UNKNOWN_QUESTION,
} from '@coxswain/turn';

/** The status after the record that `n` and `at` name. */
export function statusOf(state: SessionState, n: number, at: string): SessionStatus {
  const { context } = state;
  const timer = sessionTimer(state);
  const suspended = suspensionOf(state);
  return {
    session_id: context.session_id,
    n,
    epoch: context.epoch,
    at,
    state: state.value as StateValue,
    run: context.run,
    turn: context.turn,
    persona: context.pinned?.persona ?? null,
    persona_version: context.pinned?.persona_version ?? null,
    model: context.pinned?.model ?? null,
    stop_reason: context.stop_reason,
    error: context.failure ? { code: context.failure.code, message: context.failure.message } : null,
    failed_at: context.failed_at,
    usage: context.total_usage,
    tree_usage: addUsage(context.total_usage, context.spent_by_children.usage),
    parent: context.parent && !context.parent.detached ? parentOf(context.parent) : null,
    children: context.children.map(({ session, persona, call_id }) => ({ session, persona, call_id })),
    context: {
      tokens: context.view.tokens,
      ...windowOf(context),
      messages: messageCount(context.view),
      compactions: context.view.passes,
    },
    cost_usd: costOf(context),
    budgets: budgetsOf(context).map(({ budget, used, limit }) =>
      budget === 'usd' ? { budget, used: usdOf(used), limit: usdOf(limit) } : { budget, used, limit },
    ),
    calls: context.calls.map((row) => ({ call_id: row.call_id, tool: row.tool, status: row.ended ?? row.status })),
    approvals: context.calls
      .filter((row) => row.status === 'parked')
      .map((row) => ({
        call_id: row.call_id,
        tool: row.tool,
        args: row.args,
        requested_by: row.requested_by,
        since: timeText(row.asked_at_ms),
        ...(row.expiry ? { expires_at: timeText(row.expiry.due_at_ms) } : {}),
        ...(row.in_doubt ? { question: UNKNOWN_QUESTION } : {}),
      })),
    suspended,
    ...waitOf(state),
    wakes_at: suspended?.until ?? (timer?.what === 'wake_interval' ? timeText(timer.dueAtMs) : null),
    pending: [
      ...context.pending.map(
        ({ reminder, preempt: _preempt, allowed: _allowed, interrupts: _interrupts, ...injection }) => ({
          ...injection,
          ...(reminder ? { ...reminder, tags: [...reminder.tags] } : {}),
        }),
      ),
      ...context.followups.map(({ allowed: _allowed, ...followup }) => ({ ...followup, kind: 'followup' as const })),
    ],
    reminders: context.reminders.map(
      ({ run: _run, turn: _turn, age: _age, shown: _shown, due: _due, ...reminder }) => ({
        ...reminder,
        tags: [...reminder.tags],
      }),
    ),
  };
}

/** The context window in use: the persona's, the model's or the default one, or a smaller one after an overflow. */
function windowOf({ view, pinned }: SessionState['context']): Pick<SessionStatus['context'], 'window' | 'window_from'> {
  const compaction = pinned?.compaction;
  if (!compaction) return { window: null, window_from: null };
  const { window } = knownWindow(view, compaction);
  return { window, window_from: window < compaction.window ? 'overflow' : compaction.window_from };
}

function waitOf({ context }: SessionState): Pick<SessionStatus, 'waiting_for_persona'> {
  const wait = personaWait(context);
  if (!wait) return {};
  const { persona, version, why, since_ms, timer } = wait;
  const until = timer ? timeText(timer.due_at_ms) : null;
  return { waiting_for_persona: { persona, version, why, since: timeText(since_ms), until } };
}

function parentOf({ session, call_id, root, depth }: ParentLink): NonNullable<SessionStatus['parent']> {
  return { session, call_id, root, depth };
}

function suspensionOf({ context }: SessionState): SessionStatus['suspended'] {
  const { suspension } = context;
  if (!suspension) return null;
  const { since_ms, reason, until_ms, on_timeout, signal, command_id } = suspension;
  return {
    since: timeText(since_ms),
    reason: reason ?? null,
    until: until_ms === undefined ? null : timeText(until_ms),
    on_timeout: until_ms === undefined ? null : (on_timeout ?? 'resume_with_summary'),
    signal: signal ?? null,
    by_itself: command_id === undefined,
  };
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

/** The cost in USD. Null if unknown: also before the first answer of a model without a known price. */
function costOf({ total_cost, total_usage, pinned }: SessionState['context']): number | null {
  if (total_cost === null) return null;
  const nothingSpent = total_usage.input_tokens + total_usage.output_tokens === 0;
  return nothingSpent && (pinned?.price ?? null) === null ? null : usdOf(total_cost);
}

/** The summary for metrics. */
export function summaryOf({ value, context }: SessionState): SessionSummary {
  const asked = context.calls.filter((row) => row.status === 'parked').map(({ asked_at_ms }) => asked_at_ms);
  return {
    state: topState(value as Parameters<typeof topState>[0]),
    approvals: asked.length,
    oldestApprovalMs: asked.length > 0 ? Math.min(...asked) : null,
  };
}
