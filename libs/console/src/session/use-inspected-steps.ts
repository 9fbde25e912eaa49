/** Follows the inspection of a session for as long as its machine is looked at. */
import { type BackOff, delayAfter, type ErrorCode } from '@coxswain/protocol';
import { useContext, useEffect, useState } from 'preact/hooks';
import { Token } from '../sign-in/token.ts';
import { InspectedSteps, type ToldSteps } from './inspected-steps.ts';

const RECONNECTS: BackOff = { firstMs: 1_000, maxMs: 30_000 };
/** The gateway has said why it ends the connection. */
const ENDED_WITH_REASON = 4000;
/** Of its reasons, those that pass; with any other the next connection would end the same way. */
const PASSING: ReadonlySet<string> = new Set([
  'nats_unreachable',
  'too_many_watchers',
  'rate_limited',
  // Where it was deleted and begun anew, or another gateway has not heard of its newest record yet.
  'record_not_there',
] satisfies ErrorCode[]);

/** The steps so far; null before any are known, and where they cannot be had. */
export function useInspectedSteps(sessionId: string): ToldSteps | null {
  const token = useContext(Token);
  const [told, setTold] = useState<ToldSteps | null>(null);
  useEffect(() => {
    const inspected = new InspectedSteps();
    let socket: WebSocket | undefined;
    let again: ReturnType<typeof setTimeout> | undefined;
    let failures = 0;
    let frame = 0;
    let left = false;
    const open = () => {
      const url = new URL(`/v1/sessions/${sessionId}/inspect`, location.origin.replace(/^http/, 'ws'));
      url.searchParams.set('context', 'false');
      url.searchParams.set('from', String(inspected.told.upTo + 1));
      socket = new WebSocket(url, ['coxswain.v1', `bearer.${token}`]);
      socket.onmessage = ({ data }) => {
        failures = 0;
        inspected.take(String(data));
        // However much comes, the page is drawn once a frame.
        frame ||= requestAnimationFrame(() => {
          frame = 0;
          setTold(inspected.told);
        });
      };
      socket.onclose = ({ code, reason }) => {
        if (left || (code === ENDED_WITH_REASON && !PASSING.has(reason))) return;
        failures++;
        again = setTimeout(open, delayAfter(failures, RECONNECTS));
      };
    };
    setTold(null);
    open();
    return () => {
      left = true;
      clearTimeout(again);
      cancelAnimationFrame(frame);
      socket?.close();
    };
  }, [sessionId, token]);
  return told;
}
