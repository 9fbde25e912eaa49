/** Approvals that somebody is waited for, across sessions. */
import type { SessionStatus } from '@coxswain/protocol';
import { topState } from '@coxswain/protocol';
import type { WireSessionListing } from './session-listing.ts';

/** One of them. */
export type WirePendingApproval = SessionStatus['approvals'][number] & {
  readonly session_id: string;
  readonly persona: string | null;
};

const ASKED_SIDE_BY_SIDE = 16;

/**
 * Those of the sessions in a list, the one that has waited longest first.
 * @param statusOf asks what a session is doing; null for one that is there no more.
 */
export async function waitingApprovals(
  listings: readonly WireSessionListing[],
  statusOf: (sessionId: string) => Promise<SessionStatus | null>,
): Promise<WirePendingApproval[]> {
  const parked = listings.filter(({ state }) => topState(state) === 'function_awaiting_approval');
  const found: WirePendingApproval[] = [];
  for (let start = 0; start < parked.length; start += ASKED_SIDE_BY_SIDE) {
    const some = parked.slice(start, start + ASKED_SIDE_BY_SIDE);
    const states = await Promise.all(some.map(({ session_id }) => statusOf(session_id)));
    for (const status of states) if (status) found.push(...approvalsIn(status));
  }
  return found.sort(longestFirst);
}

/** Those of one session. */
export function approvalsIn({ session_id, persona, approvals }: SessionStatus): WirePendingApproval[] {
  return approvals.map((approval) => ({ session_id, persona, ...approval }));
}

/** The position of an approval in a list. */
export type ApprovalPlace = Pick<WirePendingApproval, 'since' | 'session_id' | 'call_id'>;

/** By how long they have waited, and by ids where that is the same: every page follows from the one before. */
export function longestFirst(one: ApprovalPlace, other: ApprovalPlace): number {
  return compare(one.since, other.since) || compare(place(one), place(other));
}

const place = ({ session_id, call_id }: ApprovalPlace) => `${session_id}/${call_id}`;
const compare = (one: string, other: string) => (one < other ? -1 : Number(one > other));
