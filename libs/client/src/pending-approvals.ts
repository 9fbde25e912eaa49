/** The pending approvals of all sessions. */
import type { SessionStatus } from '@coxswain/protocol';
import { topState } from '@coxswain/protocol';
import type { WireSessionListing } from './session-listing.ts';

/** A pending approval and its session. */
export type WirePendingApproval = SessionStatus['approvals'][number] & {
  readonly session_id: string;
  readonly persona: string | null;
};

const ASKED_SIDE_BY_SIDE = 16;

/**
 * The pending approvals of the sessions in a list, the longest pending first. Only sessions in the state
 * `function_awaiting_approval` are queried.
 * @param statusOf Queries the state of a session; null if it no longer exists.
 */
export async function pendingApprovals(
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
  return found.sort(longestPendingFirst);
}

/** The pending approvals of one session. */
export function approvalsIn({ session_id, persona, approvals }: SessionStatus): WirePendingApproval[] {
  return approvals.map((approval) => ({ session_id, persona, ...approval }));
}

/** The position of an approval in a list. */
export type ApprovalPlace = Pick<WirePendingApproval, 'since' | 'session_id' | 'call_id'>;

/** Sorts by the time of the request, the oldest first, then by ids, so that pages are consistent. */
export function longestPendingFirst(one: ApprovalPlace, other: ApprovalPlace): number {
  return compare(one.since, other.since) || compare(place(one), place(other));
}

const place = ({ session_id, call_id }: ApprovalPlace) => `${session_id}/${call_id}`;
const compare = (one: string, other: string) => (one < other ? -1 : Number(one > other));
