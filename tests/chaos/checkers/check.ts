/**
 * The checkers of a run. They read journals, the tools' own log and the history; of what a host says of itself only the lines
 * of its log that it has to write.
 */
import type { Problem } from '../../simulation/checkers/check.ts';
import type { ChaosEvidence } from '../evidence.ts';
import { checkAcknowledged } from './acknowledged.ts';
import { checkAnswered } from './answered.ts';
import { checkEffectsOnce } from './effects-once.ts';
import { checkEpochs } from './epochs.ts';
import { checkLostSessions } from './lost-sessions.ts';
import { checkSettled } from './settled.ts';
import { simulationChecker } from './simulation-checkers.ts';
import { checkToldInTime } from './told-in-time.ts';

/** One checker: what is wrong, in sentences, each with the session that it is about ('' for none). */
export type ChaosChecker = (
  evidence: ChaosEvidence,
) => readonly Omit<Problem, 'checker'>[] | Promise<readonly Omit<Problem, 'checker'>[]>;

/** All checkers, by what they hold. */
export const CHECKERS: Readonly<Record<string, ChaosChecker>> = {
  'nothing acknowledged is missing': checkAcknowledged,
  'publishers are told': checkAnswered,
  'commands once and in order': simulationChecker('commands'),
  'injections come to one end': simulationChecker('fates'),
  'receipts are true': checkToldInTime,
  'one writer, chained records': simulationChecker('chain'),
  'one result per call': simulationChecker('calls'),
  'each run ends once': simulationChecker('runs'),
  'effects once': checkEffectsOnce,
  'old owners do nothing': checkEpochs,
  'lost sessions are let go': checkLostSessions,
  'journals replay byte for byte': simulationChecker('replay'),
  'everything came to its end': checkSettled,
};

/** What a checker has found. */
export interface Verdict {
  readonly checker: string;
  readonly problems: readonly Omit<Problem, 'checker'>[];
}

/** Runs checkers one after another. One that cannot read the evidence has found that. */
export async function check(
  evidence: ChaosEvidence,
  checkers: Readonly<Record<string, ChaosChecker>> = CHECKERS,
): Promise<readonly Verdict[]> {
  const verdicts: Verdict[] = [];
  for (const [checker, run] of Object.entries(checkers)) {
    try {
      verdicts.push({ checker, problems: await run(evidence) });
    } catch (error) {
      verdicts.push({ checker, problems: [{ session: '', what: `cannot be checked: ${(error as Error).message}` }] });
    }
  }
  return verdicts;
}
