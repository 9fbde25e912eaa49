/** Follows the inspection of a session while its state machine is shown. */
import { type BackOff, delayAfter, type ErrorCode } from '@coxswain/protocol';
import { useContext, useEffect, useState } from 'preact/hooks';
import { onNextFrame } from '../page/next-frame.ts';
import { Token } from '../sign-in/token.ts';
import { InspectedSteps, type ReceivedSteps } from './inspected-steps.ts';

const RECONNECTS: BackOff = { firstMs: 1_000, maxMs: 30_000 };
/** The close code with which the gateway gives a reason. */
const ENDED_WITH_REASON = 4000;
/** Temporary reasons. After any other reason, a new connection would end the same way. */
const PASSING: ReadonlySet<string> = new Set([
  'nats_unreachable',
  'too_many_watchers',
  'rate_limited',
  // The session was recreated, or another gateway does not have its newest record yet.
  'record_not_there',
] satisfies ErrorCode[]);

/** The steps so far; null before the first ones, and if they are unavailable. */
export function useInspectedSteps(sessionId: string): ReceivedSteps | null {
  const token = useContext(Token);
  const [received, setReceived] = useState<ReceivedSteps | null>(null);
  useEffect(() => {
    const inspected = new InspectedSteps();
    let socket: WebSocket | undefined;
    let again: ReturnType<typeof setTimeout> | undefined;
    let failures = 0;
    let cancelFrame: (() => void) | null = null;
    let left = false;
    const open = () => {
      const url = new URL(`/v1/sessions/${sessionId}/inspect`, location.origin.replace(/^http/, 'ws'));
      url.searchParams.set('context', 'false');
      url.searchParams.set('from', String(inspected.received.upTo + 1));
      socket = new WebSocket(url, ['coxswain.v1', `bearer.${token}`]);
      socket.onmessage = ({ data }) => {
        failures = 0;
        inspected.take(String(data));
        // Rendered once per frame, however many messages arrive.
        cancelFrame ??= onNextFrame(() => {
          cancelFrame = null;
          setReceived(inspected.received);
        });
      };
      socket.onclose = ({ code, reason }) => {
        if (left || (code === ENDED_WITH_REASON && !PASSING.has(reason))) return;
        failures++;
        again = setTimeout(open, delayAfter(failures, RECONNECTS));
      };
    };
    setReceived(null);
    open();
    return () => {
      left = true;
      clearTimeout(again);
      cancelFrame?.();
      socket?.close();
    };
  }, [sessionId, token]);
  return received;
}
