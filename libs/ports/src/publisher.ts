/** Ephemeral messages to whoever listens: deltas and receipts. Losing one loses no truth. */
import type { Delta, Receipt, SessionRef } from '@coxswain/protocol';

/** Contract: returns at once and never throws; what cannot be sent is logged by the adapter. */
export interface Publisher {
  delta(ref: SessionRef, delta: Delta): void;
  receipt(subject: string, receipt: Receipt): void;
}
