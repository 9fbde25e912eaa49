/** The pending approvals of all sessions. */
import type { SessionStatus } from '@coxswain/protocol';
import { topState } from '@coxswain/protocol';
import type { PlacedSession } from './newest-sessions.ts';
import { listingsOf } from './page-of-sessions.ts';

/** A pending approval and its session. */
export type WirePendingApproval = SessionStatus['approvals'][number] & {
  readonly session_id: string;
  readonly persona: string | null;
};

const QUERIES_AT_ONCE = 16;

/**
 * The pending approvals of all sessions in a list, the longest pending first. They are read from the index. Sessions in
 * memory have no entry there, and are queried if they wait for an approval.
 * @param statusOf Queries the state of a session; null if it no longer exists.
 */
export async function pendingApprovals(
  sessions: AsyncIterable<PlacedSession>,
  statusOf: (sessionId: string) => Promise<SessionStatus | null>,
): Promise<WirePendingApproval[]> {
  const found: WirePendingApproval[] = [];
  const queried: string[] = [];
  for await (const { listing, approvals } of listingsOf(sessions)) {
    if (listing === null || topState(listing.state) !== 'function_awaiting_approval') continue;
    const { session_id, details } = listing;
    if (approvals && details) found.push(...approvalsIn({ session_id, persona: details.persona, approvals }));
    else queried.push(session_id);
  }
  for (let start = 0; start < queried.length; start += QUERIES_AT_ONCE) {
    const states = await Promise.all(queried.slice(start, start + QUERIES_AT_ONCE).map(statusOf));
    for (const status of states) if (status) found.push(...approvalsIn(status));
  }
  return found.sort(longestPendingFirst);
}

/** The pending approvals of one session. */
export function approvalsIn({
  session_id,
  persona,
  approvals,
}: Pick<SessionStatus, 'session_id' | 'persona' | 'approvals'>): WirePendingApproval[] {
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
