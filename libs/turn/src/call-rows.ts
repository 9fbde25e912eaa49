/** Rows of the call table, changed one at a time. */
import type { CallRow, SessionContext } from './context.ts';

/** The call table with one row changed. */
export function setCall(
  context: SessionContext,
  callId: string,
  change: Partial<CallRow>,
): { calls: readonly CallRow[] } {
  return { calls: context.calls.map((row) => (row.call_id === callId ? { ...row, ...change } : row)) };
}
