/**
 * Human-in-the-loop approvals, outside of the machine: the host asks tools whether a call requires an approval, and
 * notifies an outside service of a pending approval. The answer of a tool is recorded in the outcome that brings the
 * arguments (of a model call or of a consult), so that a replay asks no tool. `rulingOn` (calls/ruling.ts in libs/turn)
 * combines it with the permission rules.
 */
import type { ApprovalNotices, ApprovalQuestion, Clock, Toolset } from '@coxswain/ports';
import {
  APPROVAL_CHECK_MS,
  type ApprovalNotice,
  type ApprovalNoticeOutcome,
  type CallPart,
  type ModelOutcome,
  redactForDecision,
  type SessionRef,
  type ToolDefinition,
} from '@coxswain/protocol';
import { type SessionState, UNKNOWN_QUESTION } from '@coxswain/turn';

/**
 * Whether a call's tool requires a human approval of the call with these arguments. It depends on `needs_approval`:
 * `always` is true. With `by_call` the tool is asked; if it cannot be asked, fails or does not answer in time, or if
 * `signal` aborts, the result is true. Without `needs_approval`, or without a tool, it is false.
 * Contract: never rejects; settles within {@link APPROVAL_CHECK_MS}.
 * @param toolset returns the session's tools; null if they cannot be opened.
 */
export async function needsApproval(
  tool: ToolDefinition | undefined,
  question: ApprovalQuestion,
  toolset: () => Promise<Toolset | null>,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  if (tool?.needs_approval !== 'by_call') return tool?.needs_approval === 'always';
  // Do not open tools for a step that is no longer wanted.
  if (signal.aborted) return true;
  const answered = new AbortController();
  const either = AbortSignal.any([signal, answered.signal]);
  const ask = async () => (await (await toolset())?.needsApproval?.(question, either)) ?? true;
  const late = clock.sleep(APPROVAL_CHECK_MS, either).then(() => true);
  const needed = await Promise.race([ask().catch(() => true), late]);
  answered.abort();
  return needed;
}

/**
 * The outcome of a model call, with `needs_approval` on each call that requires an approval. Calls with a problem, and
 * an outcome that is not `complete`, stay as they are.
 * @param ask {@link needsApproval} for one call.
 */
export async function withApprovals(
  outcome: ModelOutcome,
  tools: readonly ToolDefinition[],
  ask: (tool: ToolDefinition, call: CallPart) => Promise<boolean>,
): Promise<ModelOutcome> {
  if (outcome.status !== 'complete' || !tools.some((tool) => tool.needs_approval)) return outcome;
  const content = await Promise.all(
    outcome.message.content.map(async (part) => {
      if (part.type !== 'call' || part.problem) return part;
      const tool = tools.find(({ name }) => name === part.tool);
      const needed = tool?.needs_approval !== undefined && (await ask(tool, part));
      return needed ? { ...part, needs_approval: true as const } : part;
    }),
  );
  return { ...outcome, message: { ...outcome.message, content } };
}

/** The pending approval of one call, for {@link notifyApproval}. */
export interface ApprovalNoticeRequest {
  readonly ref: SessionRef;
  readonly effectId: string;
  readonly callId: string;
  /** Idempotency key: equal for every delivery of the same notice. */
  readonly key: string;
}

/**
 * Notifies the outside service of a pending approval. Never rejects. The outcome is `cancelled` if the call is no
 * longer known, and `failed` on a host without such a service.
 */
export async function notifyApproval(
  notices: ApprovalNotices | undefined,
  { context }: SessionState,
  { ref, effectId, callId, key }: ApprovalNoticeRequest,
  signal: AbortSignal,
): Promise<ApprovalNoticeOutcome> {
  const head = { type: 'notice_outcome', effect_id: effectId } as const;
  const row = context.calls.find(({ call_id }) => call_id === callId);
  if (!row) return { ...head, status: 'cancelled', attempts: 0 };
  // The session moved here from a host with such a service.
  if (!notices) {
    const error = { code: 'notice_failed', message: 'this host has no recipient for notices' } as const;
    return { ...head, status: 'failed', attempts: 0, error };
  }
  const { tool, args, requested_by = '', in_doubt, expiry, asked_at_ms = context.at_ms } = row;
  const notice: ApprovalNotice = {
    type: 'approval.requested',
    timestamp: new Date(asked_at_ms).toISOString(),
    data: {
      tenant: ref.tenant,
      session_id: ref.sessionId,
      persona: context.pinned?.persona ?? null,
      call_id: callId,
      tool,
      args: redactForDecision(args),
      requested_by,
      ...(in_doubt ? { question: UNKNOWN_QUESTION } : {}),
      ...(expiry ? { expires_at: new Date(expiry.due_at_ms).toISOString() } : {}),
    },
  };
  return { ...head, ...(await notices.deliver(key, notice, signal)) };
}
