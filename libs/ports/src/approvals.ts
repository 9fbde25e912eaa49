/**
 * Ports of approvals: rules that a persona remembers, and notifications of external services.
 */
import type {
  ApprovalNotice,
  NoticeOutcome,
  RememberedRule,
  RuleHolder,
  StoredRule,
  TenantId,
} from '@coxswain/protocol';

/** The rules of personas, for later sessions. The session in which one was made holds the truth; this is where others find it. */
export interface RememberedRules {
  /**
   * The rules that hold for this persona in this root, the oldest first: the newest `BOUNDS.rememberedRulesMax` of them.
   * Contract: rejects where it is not known.
   */
  of(tenant: TenantId, holder: RuleHolder): Promise<readonly RememberedRule[]>;
  /** Keeps one that is not known yet, or that it is revoked, which is for good. The same again changes nothing. */
  keep(tenant: TenantId, stored: StoredRule): Promise<void>;
}

/** Notifies an external service of a pending approval. */
export interface ApprovalNotices {
  /**
   * Contract: never rejects; ends within minutes, whatever is at the other end, and soon after `signal` is aborted.
   * @param id the same for the same notice, also when another host gives it again.
   */
  deliver(id: string, notice: ApprovalNotice, signal: AbortSignal): Promise<Omit<NoticeOutcome, 'type' | 'effect_id'>>;
}
