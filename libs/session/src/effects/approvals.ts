/**
 * Human-in-the-loop approvals, outside of the machine: tools say whether they require an approval of a call, and an outside
 * service is notified of a pending approval. The answers of tools are recorded with the input that brings the arguments (a
 * model's answer or the outcome of a hook), so that a replay asks no tool. `rulingOn` (calls/ruling.ts in libs/turn) decides
 * whether the call needs an approval.
 */
import type { ApprovalNotices, ApprovalQuestion, Clock, Toolset } from '@coxswain/ports';
import {
  APPROVAL_CHECK_MS,
  type ApprovalNotice,
  type CallPart,
  type ModelOutcome,
  type NoticeOutcome,
  redactForDecision,
  type SessionRef,
  type ToolDefinition,
} from '@coxswain/protocol';
import { type SessionState, UNKNOWN_QUESTION } from '@coxswain/turn';

/**
 * Whether a call's tool requires a human approval, with the arguments of the call.
 * Contract: never rejects; settles within {@link APPROVAL_CHECK_MS}. True where a tool that decides by call cannot be asked,
 * fails, or does not answer in time.
 * @param toolset opens the session's tools; null where they cannot be opened.
 */
export async function needsApproval(
  tool: ToolDefinition | undefined,
  question: ApprovalQuestion,
  toolset: () => Promise<Toolset | null>,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  if (tool?.needs_approval !== 'by_call') return tool?.needs_approval === 'always';
  const answered = new AbortController();
  const either = AbortSignal.any([signal, answered.signal]);
  const ask = async () => (await (await toolset())?.needsApproval?.(question, either)) ?? true;
  const late = clock.sleep(APPROVAL_CHECK_MS, either).then(() => true);
  const needed = await Promise.race([ask().catch(() => true), late]);
  answered.abort();
  return needed;
}

/** A model's answer, with the tools' answers on approval. */
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

/** One notice. */
export interface NoticeAsk {
  readonly ref: SessionRef;
  readonly effectId: string;
  readonly callId: string;
  /** Idempotency key: equal for every delivery of the same notice. */
  readonly key: string;
}

/** Sends a notice. Never rejects. */
export async function notifyApproval(
  notices: ApprovalNotices | undefined,
  { context }: SessionState,
  { ref, effectId, callId, key }: NoticeAsk,
  signal: AbortSignal,
): Promise<NoticeOutcome> {
  const head = { type: 'notice_outcome', effect_id: effectId } as const;
  const row = context.calls.find(({ call_id }) => call_id === callId);
  if (!row) return { ...head, status: 'cancelled', attempts: 0 };
  // The run moved from a host with notices to one without.
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
