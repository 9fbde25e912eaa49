/** The pending approvals of one session, in the order in which they were requested. */
import type { Session } from './session-handle.ts';
import type { UiEvent, UiEventOf } from './ui-events.ts';

/** A pending approval. */
export type OpenApproval = UiEventOf<'approval_needed'> & {
  /** The session of the call. */
  readonly session: Session;
};

/** Collects the pending approvals from a session's events. */
export class OpenApprovals {
  readonly #session: Session;
  readonly #open = new Map<string, OpenApproval>();

  constructor(session: Session) {
    this.#session = session;
  }

  add(event: UiEvent): void {
    if (event.type === 'approval_needed') this.#open.set(event.callId, { ...event, session: this.#session });
    else if (event.type === 'approval_settled' || event.type === 'call_ended') this.#open.delete(event.callId);
    else if (event.type === 'run_ended') this.#open.clear();
  }

  get list(): readonly OpenApproval[] {
    return [...this.#open.values()];
  }
}

/** Whether a call waits for a decision. Queries a session host. @throws NoHostError without one. */
export async function isPending(session: Pick<Session, 'state'>, callId: string): Promise<boolean> {
  return (await session.state()).approvals.some((approval) => approval.callId === callId);
}
