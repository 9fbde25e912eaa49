/** When all is over, the store holds no command any more: each was taken, or refused, and acknowledged by a host that has its session. */
import type { Checker } from './check.ts';

/** See the top of the file. */
export const checkRest: Checker = ({ session }, { ended, waiting }) =>
  ended ? (waiting?.get(session) ?? []).map((command) => `${command} waits in the store still`) : [];
