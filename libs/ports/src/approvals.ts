/** Ports of human-in-the-loop approvals: the remembered rules of personas, and notifications of external services. */
import type {
  ApprovalNotice,
  ApprovalNoticeOutcome,
  RememberedRule,
  RuleBinding,
  StoredRule,
  TenantId,
} from '@coxswain/protocol';

/**
 * The remembered rules of personas, for later sessions. The journal of the session that made a rule is authoritative.
 */
export interface RememberedRules {
  /**
   * The rules that apply to this persona in this root, oldest first: at most the newest `BOUNDS.rememberedRulesMax`.
   * Revoked rules are left out.
   * Contract: rejects if the rules cannot be read.
   */
  of(tenant: TenantId, holder: RuleBinding): Promise<readonly RememberedRule[]>;
  /** Stores a rule, or its revocation. A revocation is final. Storing the same state again changes nothing. */
  keep(tenant: TenantId, stored: StoredRule): Promise<void>;
}

/** Notifies an external service of a pending approval. */
export interface ApprovalNotices {
  /**
   * Contract: never rejects. Settles within minutes, whatever the service does, and soon after `signal` aborts.
   * @param id idempotency key: equal for every delivery of the same notice, on every host.
   */
  deliver(
    id: string,
    notice: ApprovalNotice,
    signal: AbortSignal,
  ): Promise<Omit<ApprovalNoticeOutcome, 'type' | 'effect_id'>>;
}
