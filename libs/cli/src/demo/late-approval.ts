/** Approves the demo's edit for a person who only watches: the demo has an end whether or not anyone answers. */
import type { Session, UiEvent } from '@coxswain/client';
import type { OpenApproval } from '../run/open-approvals.ts';
import { APPROVED_AFTER_MS } from './guide.ts';

/** Waits for each open approval. A decision of anyone else ends the waiting. */
export class LateApproval {
  readonly #session: Pick<Session, 'approve'>;
  readonly #say: (text: string) => void;
  readonly #waiting = new Map<string, ReturnType<typeof setTimeout>>();

  constructor(session: Pick<Session, 'approve'>, say: (text: string) => void) {
    this.#session = session;
    this.#say = say;
  }

  /** Starts to wait for the approvals that are new among these. */
  approvalsOpen(approvals: readonly Pick<OpenApproval, 'callId' | 'tool'>[]): void {
    for (const { callId, tool } of approvals) {
      if (this.#waiting.has(callId)) continue;
      const approve = () => {
        this.#say(`no answer came: the demo approves ${tool}`);
        // A decision that was quicker is in the journal, and shown from there.
        this.#session.approve(callId, { actor: 'demo', wait: 'stored' }).catch((error: Error) => {
          this.#say(`not approved: ${error.message}`);
        });
      };
      this.#waiting.set(callId, setTimeout(approve, APPROVED_AFTER_MS));
    }
  }

  /** Ends the waiting for a call that was decided or has ended. */
  saw(event: UiEvent): void {
    if (event.type === 'approval_settled' || event.type === 'call_ended') this.#end(event.callId);
    else if (event.type === 'run_ended') this.close();
  }

  /** Ends all waiting. */
  close(): void {
    for (const callId of [...this.#waiting.keys()]) this.#end(callId);
  }

  #end(callId: string): void {
    clearTimeout(this.#waiting.get(callId));
    this.#waiting.delete(callId);
  }
}
