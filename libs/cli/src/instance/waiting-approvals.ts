/** Approvals that are waited for, across sessions, as lists show them. */
import {
  approvalsIn,
  longestFirst,
  nodesOf,
  readTree,
  type WirePendingApproval,
  waitingApprovals as waitingIn,
} from '@coxswain/client';
import { redactForDecision } from '@coxswain/protocol';
import type { OpenBus } from './open-bus.ts';
import { sessionStatus } from './session-status.ts';

/** One of them: its arguments are shortened, and without what looks like a secret. */
export type WaitingApproval = WirePendingApproval;

/** All of the tenant, those that have waited longest first. */
export async function waitingApprovals(bus: OpenBus): Promise<WaitingApproval[]> {
  const all = await waitingIn(await bus.client.wire.listings(), (id) => sessionStatus(bus, bus.client.session(id)));
  return all.map((approval) => ({ ...approval, args: redactForDecision(approval.args) }));
}

/** Those of the sessions that a session has started, and of all below them; those that have waited longest first. */
export async function approvalsBelow(bus: OpenBus, sessionId: string): Promise<WaitingApproval[]> {
  const { top } = await readTree((id) => bus.client.session(id).journal(), sessionId);
  const asking = top.children.flatMap(nodesOf).filter(({ approvals }) => approvals > 0);
  const found: WaitingApproval[] = [];
  for (const { session_id } of asking)
    found.push(...approvalsIn(await sessionStatus(bus, bus.client.session(session_id))));
  return found.map((approval) => ({ ...approval, args: redactForDecision(approval.args) })).sort(longestFirst);
}
