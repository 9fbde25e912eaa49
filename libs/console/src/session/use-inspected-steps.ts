/** Follows the inspection of a session for as long as its machine is looked at. */
import { useContext, useEffect, useState } from 'preact/hooks';
import { Token } from '../sign-in/token.ts';
import { InspectedSteps, type ToldSteps } from './inspected-steps.ts';

const PAUSE_MS = { first: 1_000, most: 30_000 };
/** The gateway has said why it ends the connection, and another would end the same way. */
const ENDED_FOR_GOOD = 4000;

/** The steps so far; null before any are known, and where they cannot be had. */
export function useInspectedSteps(sessionId: string): ToldSteps | null {
  const token = useContext(Token);
  const [told, setTold] = useState<ToldSteps | null>(null);
  useEffect(() => {
    const inspected = new InspectedSteps();
    let socket: WebSocket | undefined;
    let again: ReturnType<typeof setTimeout> | undefined;
    let pauseMs = PAUSE_MS.first;
    let frame = 0;
    let left = false;
    const open = () => {
      const url = new URL(`/v1/sessions/${sessionId}/inspect`, location.origin.replace(/^http/, 'ws'));
      url.searchParams.set('context', 'false');
      url.searchParams.set('from', String(inspected.told.upTo + 1));
      socket = new WebSocket(url, ['coxswain.v1', `bearer.${token}`]);
      socket.onmessage = ({ data }) => {
        pauseMs = PAUSE_MS.first;
        inspected.take(String(data));
        // However much comes, the page is drawn once a frame.
        frame ||= requestAnimationFrame(() => {
          frame = 0;
          setTold(inspected.told);
        });
      };
      socket.onclose = ({ code }) => {
        if (left || code === ENDED_FOR_GOOD) return;
        again = setTimeout(open, pauseMs);
        pauseMs = Math.min(2 * pauseMs, PAUSE_MS.most);
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
