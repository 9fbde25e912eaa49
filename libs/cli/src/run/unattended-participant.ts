/** Answers approvals if there is no interactive terminal. */
import { isPending, type OpenApproval } from '@coxswain/client/transport';
import type { SessionView } from '../terminal/mod.ts';
import type { Participant } from './follow-session.ts';

/** The value of `--on-ask`; `exit` without the flag. */
export type OnAsk = 'deny' | 'wait' | 'exit';

/** A failed denial is repeated after these pauses, in ms. */
const DENIED_AGAIN_AFTER_MS = [1_000, 2_000, 4_000, 8_000];

/** What a participant uses of the command that follows the session. */
export interface Unattended {
  readonly view: Pick<SessionView, 'notice'>;
  /** Receives each denial in flight. */
  own(task: Promise<unknown>): void;
  /** Ends the following: a call could not be denied, so the wait for its run would have no end. */
  fail(error: Error): void;
  /** Aborts when the following ends. Failed denials are then not repeated. */
  readonly over: AbortSignal;
}

/** Creates a participant that denies, waits or stops. */
export function unattendedParticipant(onAsk: OnAsk, { view, own, fail, over }: Unattended): Participant {
  const denied = new Set<string>();
  const deny = async ({ session, callId, tool }: OpenApproval) => {
    for (const pauseMs of [...DENIED_AGAIN_AFTER_MS, null]) {
      try {
        await session.deny(callId, { reason: 'no terminal for an approval (--on-ask deny)' });
        return;
      } catch (error) {
        // Another client may have decided meanwhile. If that cannot be read either, the denial is repeated.
        if (over.aborted || !(await isPending(session, callId).catch(() => true))) return;
        view.notice(`${tool} could not be denied: ${(error as Error).message}`);
        if (pauseMs === null) fail(error as Error);
        else await pause(pauseMs, over);
      }
      if (over.aborted) return;
    }
  };
  return {
    approvalsOpen(approvals) {
      if (onAsk === 'exit') return 'stop';
      for (const approval of approvals) {
        const id = `${approval.session.id}/${approval.callId}`;
        if (onAsk === 'wait' || denied.has(id)) continue;
        denied.add(id);
        own(deny(approval));
      }
      return 'go_on';
    },
    stepWaits: () => (onAsk === 'wait' ? 'go_on' : 'stop'),
  };
}

/** Resolves after the time, or when the signal aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
