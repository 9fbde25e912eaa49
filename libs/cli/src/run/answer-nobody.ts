/** Approvals where nobody sits at the keyboard. */
import type { SessionView } from '../terminal/session-view.ts';
import type { Participant } from './follow-session.ts';

/** What `--on-ask` says; `exit` where it is not given. */
export type OnAsk = 'deny' | 'wait' | 'exit';

/** Denies, waits or stops. The denials that are under way are in `sent`. */
export function nobody(view: SessionView, onAsk: OnAsk, own: (task: Promise<unknown>) => void): Participant {
  const denied = new Set<string>();
  return {
    approvalsOpen(approvals) {
      if (onAsk === 'exit') return 'stop';
      for (const { session, callId, tool } of approvals) {
        const id = `${session.id}/${callId}`;
        if (onAsk === 'wait' || denied.has(id)) continue;
        denied.add(id);
        const reason = 'no terminal for an approval (--on-ask deny)';
        own(
          session
            .deny(callId, { reason })
            .catch((error: Error) => view.notice(`${tool} could not be denied: ${error.message}`)),
        );
      }
      return 'go_on';
    },
    stepWaits: () => (onAsk === 'wait' ? 'go_on' : 'stop'),
  };
}
