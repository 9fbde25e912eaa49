/** Metrics of a host's sessions: how many are in which state, and the approvals that wait. */
import type { Clock, Meters, SessionSummary } from '@coxswain/ports';

/**
 * Registers the metrics. They are computed at each scrape.
 * @param summaries of the sessions in this host's partitions; null for a session that is not loaded yet, or has no
 *   record.
 * @returns whether the metrics are collected.
 */
export function measureSessions(
  meters: Meters,
  clock: Pick<Clock, 'nowMs'>,
  summaries: () => Iterable<SessionSummary | null>,
): boolean {
  const isMeasured = meters.census('coxswain_sessions', () => countStates(summaries()));
  meters.census('coxswain_approvals_waiting', () => new Map([['', countApprovals(summaries(), clock).waiting]]));
  meters.census(
    'coxswain_approvals_oldest_seconds',
    () => new Map([['', countApprovals(summaries(), clock).oldestSeconds]]),
  );
  return isMeasured;
}

function countStates(summaries: Iterable<SessionSummary | null>): ReadonlyMap<string, number> {
  const counted = new Map<string, number>();
  for (const summary of summaries) {
    const state = summary?.state ?? 'loading';
    counted.set(state, (counted.get(state) ?? 0) + 1);
  }
  return counted;
}

function countApprovals(
  summaries: Iterable<SessionSummary | null>,
  clock: Pick<Clock, 'nowMs'>,
): { readonly waiting: number; readonly oldestSeconds: number } {
  const nowMs = clock.nowMs();
  let waiting = 0;
  let oldestMs = nowMs;
  for (const summary of summaries) {
    waiting += summary?.approvals ?? 0;
    oldestMs = Math.min(oldestMs, summary?.oldestApprovalMs ?? nowMs);
  }
  return { waiting, oldestSeconds: (nowMs - oldestMs) / 1_000 };
}
