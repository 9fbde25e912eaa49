/** After the load everything comes to its end: every session, every command, every fault. */
import type { ChaosChecker } from './check.ts';

/** See the top of the file. */
export const checkSettled: ChaosChecker = ({ history, journals }) => {
  const wrong: { session: string; what: string }[] = [];
  const phases = history.of('phase');
  for (const { phase, detail } of phases) if (phase === 'unsettled') wrong.push({ session: '', what: detail ?? phase });
  if (!phases.some(({ phase }) => phase === 'settled')) wrong.push({ session: '', what: 'the run did not settle' });
  for (const { fault, on, phase, detail } of history.of('fault'))
    if (phase === 'failed') wrong.push({ session: '', what: `${fault} of ${on} could not be carried out: ${detail}` });
  const there = new Set(journals.map(({ session }) => session));
  for (const { session, verb } of history.of('invoked'))
    if (verb === 'start' && !there.has(session)) wrong.push({ session, what: 'was started and has no journal' });
  return wrong;
};
