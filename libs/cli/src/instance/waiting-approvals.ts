/** Pending approvals of several sessions, as lists show them. */
import {
  approvalsIn,
  longestPendingFirst,
  nodesOf,
  readTree,
  type WirePendingApproval,
  pendingApprovals as waitingIn,
} from '@coxswain/client';
import { redactForDecision } from '@coxswain/protocol';
import type { OpenBus } from './open-bus.ts';
import { sessionStatus } from './session-status.ts';

/** A pending approval. Its arguments are shortened, and apparent secrets are removed. */
export type WaitingApproval = WirePendingApproval;

/** All pending approvals of the tenant, the oldest first. */
export async function waitingApprovals(bus: OpenBus): Promise<WaitingApproval[]> {
  const all = await waitingIn(await bus.client.wire.listings(), (id) => sessionStatus(bus, bus.client.session(id)));
  return all.map((approval) => ({ ...approval, args: redactForDecision(approval.args) }));
}

/** The pending approvals of all descendants of a session, the oldest first. */
export async function approvalsBelow(bus: OpenBus, sessionId: string): Promise<WaitingApproval[]> {
  const { top } = await readTree((id) => bus.client.session(id).journal(), sessionId);
  const asking = top.children.flatMap(nodesOf).filter(({ approvals }) => approvals > 0);
  const found: WaitingApproval[] = [];
  for (const { session_id } of asking)
    found.push(...approvalsIn(await sessionStatus(bus, bus.client.session(session_id))));
  return found.map((approval) => ({ ...approval, args: redactForDecision(approval.args) })).sort(longestPendingFirst);
}
