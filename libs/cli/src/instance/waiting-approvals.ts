/** Approvals that are waited for, across sessions. */
import { topState } from '@coxswain/client';
import { type Json, redactArgs, type SessionStatus } from '@coxswain/protocol';
import type { OpenBus } from './open-bus.ts';
import { sessionStatus } from './session-status.ts';

/** One of them, as lists show it: its arguments are shortened, and without what looks like a secret. */
export interface WaitingApproval {
  readonly session_id: string;
  readonly persona: string | null;
  readonly call_id: string;
  readonly tool: string;
  readonly args: Json;
  readonly requested_by: string;
  /** ISO 8601. */
  readonly since: string;
  readonly expires_at?: string | undefined;
  readonly question?: string | undefined;
}

const ASKED_SIDE_BY_SIDE = 16;

/** All of the tenant, those that have waited longest first. */
export async function waitingApprovals(bus: OpenBus): Promise<WaitingApproval[]> {
  const parked = (await bus.client.sessions()).filter(({ state }) => topState(state) === WAITS);
  const found: WaitingApproval[] = [];
  for (let start = 0; start < parked.length; start += ASKED_SIDE_BY_SIDE) {
    const some = parked.slice(start, start + ASKED_SIDE_BY_SIDE);
    const states = await Promise.all(some.map(({ session_id }) => sessionStatus(bus, bus.client.session(session_id))));
    for (const status of states) found.push(...approvalsIn(status));
  }
  return found.sort((one, other) => compare(orderOf(one), orderOf(other)));
}

const WAITS = 'function_awaiting_approval';

/** Those of one session. */
export function approvalsIn({ session_id, persona, approvals }: SessionStatus): WaitingApproval[] {
  return approvals.map((approval) => ({ session_id, persona, ...approval, args: redactArgs(approval.args) }));
}

/** Where an approval stands in the list. `--after` takes the end of it. */
function orderOf({ since, session_id, call_id }: WaitingApproval): string {
  return `${since} ${session_id}/${call_id}`;
}

const compare = (one: string, other: string) => (one < other ? -1 : Number(one > other));
