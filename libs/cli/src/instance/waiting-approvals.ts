/** Approvals that are waited for, across sessions, as lists show them. */
import { type PendingApproval, waitingApprovals as waitingIn } from '@coxswain/client';
import { redactArgs } from '@coxswain/protocol';
import type { OpenBus } from './open-bus.ts';
import { sessionStatus } from './session-status.ts';

/** One of them: its arguments are shortened, and without what looks like a secret. */
export type WaitingApproval = PendingApproval;

/** All of the tenant, those that have waited longest first. */
export async function waitingApprovals(bus: OpenBus): Promise<WaitingApproval[]> {
  const all = await waitingIn(await bus.client.sessions(), (id) => sessionStatus(bus, bus.client.session(id)));
  return all.map((approval) => ({ ...approval, args: redactArgs(approval.args) }));
}
