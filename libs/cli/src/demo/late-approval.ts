/** Approves the demo's edit after a time without a decision, so that the demo ends if no one decides. */
import type { Session, UiEvent } from '@coxswain/client';
import type { OpenApproval } from '@coxswain/client/transport';
import { APPROVED_AFTER_MS } from './guide.ts';

/** Starts a timer for each open approval. Any decision stops the timer. */
export class LateApproval {
  readonly #session: Pick<Session, 'approve'>;
  readonly #say: (text: string) => void;
  readonly #waiting = new Map<string, ReturnType<typeof setTimeout>>();

  constructor(session: Pick<Session, 'approve'>, say: (text: string) => void) {
    this.#session = session;
    this.#say = say;
  }

  /** Starts timers for the approvals that are new. */
  approvalsOpen(approvals: readonly Pick<OpenApproval, 'callId' | 'tool'>[]): void {
    for (const { callId, tool } of approvals) {
      if (this.#waiting.has(callId)) continue;
      const approve = () => {
        this.#say(`no answer came: the demo approves ${tool}`);
        // An earlier decision is in the journal and is shown from there.
        this.#session.approve(callId, { actor: 'demo', wait: 'stored' }).catch((error: Error) => {
          this.#say(`not approved: ${error.message}`);
        });
      };
      this.#waiting.set(callId, setTimeout(approve, APPROVED_AFTER_MS));
    }
  }

  /** Stops the timer of a call that was decided or has ended. The end of the run stops all timers. */
  saw(event: UiEvent): void {
    if (event.type === 'approval_settled' || event.type === 'call_ended') this.#end(event.callId);
    else if (event.type === 'run_ended') this.close();
  }

  /** Stops all timers. */
  close(): void {
    for (const callId of [...this.#waiting.keys()]) this.#end(callId);
  }

  #end(callId: string): void {
    clearTimeout(this.#waiting.get(callId));
    this.#waiting.delete(callId);
  }
}
