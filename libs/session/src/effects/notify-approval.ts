/** The effect that notifies an outside service of a pending approval. */
import type { ApprovalNotices } from '@coxswain/ports';
import { type ApprovalNotice, type NoticeOutcome, redactForDecision, type SessionRef } from '@coxswain/protocol';
import { type SessionState, UNKNOWN_QUESTION } from '@coxswain/turn';

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
