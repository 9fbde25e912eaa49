/** Answers approvals if there is no interactive terminal. */
import type { SessionView } from '../terminal/mod.ts';
import type { Participant } from './follow-session.ts';

/** The value of `--on-ask`; `exit` without the flag. */
export type OnAsk = 'deny' | 'wait' | 'exit';

/** Creates a participant that denies, waits or stops. @param own receives each denial in flight. */
export function unattendedParticipant(
  view: SessionView,
  onAsk: OnAsk,
  own: (task: Promise<unknown>) => void,
): Participant {
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
