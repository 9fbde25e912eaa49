/** Whoever publishes is told: stored, or an error; and within the bounds that clients have. Silence is neither. */
import type { ChaosChecker } from './check.ts';

/** Three attempts to store of 5 s each, and half a minute for a receipt; a busy machine adds some. */
const TOLD_WITHIN_MS = 60_000;

/** See the top of the file. */
export const checkAnswered: ChaosChecker = ({ history }) => {
  const wrong: { session: string; what: string }[] = [];
  const ends = new Map<number, number>();
  for (const what of ['stored', 'unacknowledged'] as const)
    for (const { op, atMs } of history.of(what)) ends.set(op, atMs);
  for (const { op, session, verb, commandId, atMs } of history.of('invoked')) {
    const end = ends.get(op);
    if (end === undefined) wrong.push({ session, what: `whoever sent ${verb} ${commandId} was told nothing` });
    else if (end - atMs > TOLD_WITHIN_MS)
      wrong.push({ session, what: `whoever sent ${verb} ${commandId} waited ${Math.round(end - atMs)} ms` });
  }
  return wrong;
};
