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

/** Queries the state of a session; null if it no longer exists. */
type StatusOf = (sessionId: string) => Promise<SessionStatus | null>;

/** A request for a page of approvals. */
export interface ApprovalsQuery {
  /** The place of the last approval of the previous page; null for the first page. */
  readonly after: ApprovalPlace | null;
  /** The maximum number of approvals. */
  readonly limit: number;
  /** The page ends after the approval with which its JSON reaches this size. */
  readonly maxBytes: number;
}

/** A page of approvals. */
export interface WireApprovalsPage {
  readonly approvals: readonly WirePendingApproval[];
  /** Whether more approvals follow. */
  readonly more: boolean;
}

/** The pending approvals of all sessions in a list, the longest pending first. */
export async function pendingApprovals(
  sessions: AsyncIterable<PlacedSession>,
  statusOf: StatusOf,
): Promise<WirePendingApproval[]> {
  const found: WirePendingApproval[] = [];
  for await (const approval of approvalsOf(sessions, statusOf)) found.push(approval);
  return found.sort(longestPendingFirst);
}

/** A page of the pending approvals of all sessions in a list. Others are dropped while it is collected. */
export async function pageOfApprovals(
  sessions: AsyncIterable<PlacedSession>,
  statusOf: StatusOf,
  { after, limit, maxBytes }: ApprovalsQuery,
): Promise<WireApprovalsPage> {
  let page: { readonly approval: WirePendingApproval; readonly bytes: number }[] = [];
  let pageBytes = 0;
  let more = false;
  const dropOthers = () => {
    page.sort((one, other) => longestPendingFirst(one.approval, other.approval));
    pageBytes = 0;
    let length = 0;
    for (const { bytes } of page) {
      if (length >= limit || pageBytes >= maxBytes) break;
      length++;
      pageBytes += bytes;
    }
    more ||= length < page.length;
    page = page.slice(0, length);
  };
  for await (const approval of approvalsOf(sessions, statusOf)) {
    if (after && longestPendingFirst(approval, after) <= 0) continue;
    const bytes = Buffer.byteLength(JSON.stringify(approval));
    page.push({ approval, bytes });
    pageBytes += bytes;
    if (page.length >= 2 * limit || pageBytes >= 2 * maxBytes) dropOthers();
  }
  dropOthers();
  return { approvals: page.map(({ approval }) => approval), more };
}

/**
 * The pending approvals of sessions, in no order. They are read from the index. Sessions in memory have no entry there,
 * and are queried if they wait for an approval.
 */
async function* approvalsOf(
  sessions: AsyncIterable<PlacedSession>,
  statusOf: StatusOf,
): AsyncGenerator<WirePendingApproval, void, undefined> {
  const queried: string[] = [];
  for await (const { listing, approvals } of listingsOf(sessions)) {
    if (listing === null || topState(listing.state) !== 'function_awaiting_approval') continue;
    const { session_id, details } = listing;
    if (approvals && details) yield* approvalsIn({ session_id, persona: details.persona, approvals });
    else queried.push(session_id);
  }
  for (let start = 0; start < queried.length; start += QUERIES_AT_ONCE) {
    const states = await Promise.all(queried.slice(start, start + QUERIES_AT_ONCE).map(statusOf));
    for (const status of states) if (status) yield* approvalsIn(status);
  }
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
