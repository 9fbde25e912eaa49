/** Pending approvals of several sessions, as lists show them. */
import {
  approvalsIn,
  longestPendingFirst,
  nodesOf,
  pendingApprovals,
  readTree,
  type WirePendingApproval,
} from '@coxswain/client';
import { redactForDecision } from '@coxswain/protocol';
import type { OpenBus } from './open-bus.ts';
import { sessionStatus } from './session-status.ts';

/** All pending approvals of the tenant, the oldest first. Arguments are shortened, and apparent secrets are removed. */
export async function listPendingApprovals(bus: OpenBus): Promise<WirePendingApproval[]> {
  const { sessions } = await bus.client.wire.newestSessions();
  const all = await pendingApprovals(sessions, (id) => sessionStatus(bus, bus.client.session(id)));
  return all.map((approval) => ({ ...approval, args: redactForDecision(approval.args) }));
}

/** The pending approvals of all descendants of a session, as {@link listPendingApprovals} returns them. */
export async function approvalsBelow(bus: OpenBus, sessionId: string): Promise<WirePendingApproval[]> {
  const { top } = await readTree((id) => bus.client.session(id).journal(), sessionId);
  const asking = top.children.flatMap(nodesOf).filter(({ approvals }) => approvals > 0);
  const found: WirePendingApproval[] = [];
  for (const { session_id } of asking)
    found.push(...approvalsIn(await sessionStatus(bus, bus.client.session(session_id))));
  return found.map((approval) => ({ ...approval, args: redactForDecision(approval.args) })).sort(longestPendingFirst);
}
