/** What tenants have in the store. */
import type { TenantId } from '@coxswain/protocol';

/** A measurement of one tenant. */
export interface MeasuredUsage {
  /** Sessions with a journal. A deleted session does not count once its records are purged. */
  readonly sessions: number;
  /** Bytes of these journals; an estimate where several tenants share a store. */
  readonly storedBytes: number;
}

/** Measures tenants in the background. */
export interface TenantUsage {
  /**
   * The newest measurement, the same object until there is a newer one; null before the first. Contract: returns at once. A
   * tenant is measured from the first question on.
   */
  of(tenant: TenantId): MeasuredUsage | null;
}
