/**
 * Stop predicates: stop conditions in code. Whether a host knows those of a persona, and their evaluation after a turn.
 */
import type { Clock, StopPredicate, StopPredicates, StopQuestion } from '@coxswain/ports';
import { BOUNDS, type Failure, type Persona, type StopAnswer, type StopOutcome } from '@coxswain/protocol';

/** The failure of a persona whose `stop_when` names a predicate that this host has not registered; otherwise null. */
export function unknownPredicate(persona: Persona, known: StopPredicates): Failure | null {
  const named = (persona.stop_when ?? []).flatMap((one) => ('predicate' in one ? [one.predicate] : []));
  const missing = named.find((name) => !Object.hasOwn(known, name));
  if (missing === undefined) return null;
  const registered = Object.keys(known).sort().join(', ') || 'none';
  return {
    code: 'predicate_unknown',
    message: `persona ${persona.name}: stop_when names the predicate ${missing}, which this host has not registered; registered: ${registered}`,
  };
}

/**
 * Evaluates predicates in order until one holds or `signal` aborts; after an abort the status is `cancelled`. A
 * predicate counts as false, and its answer has the error, if the host does not know it, if it fails or returns no
 * boolean, or if it does not answer within `BOUNDS.predicateTimeoutMs`. Never rejects.
 */
export async function checkStop(
  predicates: StopPredicates,
  clock: Clock,
  ask: { readonly effectId: string; readonly names: readonly string[]; readonly question: StopQuestion },
  signal: AbortSignal,
): Promise<StopOutcome> {
  const answers: StopAnswer[] = [];
  for (const name of ask.names) {
    if (signal.aborted || answers.some(({ holds }) => holds)) break;
    const predicate = Object.hasOwn(predicates, name) ? predicates[name] : undefined;
    answers.push({ predicate: name, ...(await answerOf(predicate, clock, ask.question, signal)) });
  }
  return {
    type: 'stop_outcome',
    effect_id: ask.effectId,
    status: signal.aborted ? 'cancelled' : 'checked',
    answers,
  };
}

async function answerOf(
  predicate: StopPredicate | undefined,
  clock: Clock,
  question: StopQuestion,
  signal: AbortSignal,
): Promise<Omit<StopAnswer, 'predicate'>> {
  const failed = (message: string) => ({ holds: false, failure: { code: 'predicate_failed' as const, message } });
  if (!predicate) return failed('this host has no such predicate');
  const over = new AbortController();
  const both = AbortSignal.any([signal, over.signal]);
  const late = clock.sleep(BOUNDS.predicateTimeoutMs, both).then(() => failed('it did not answer in time'));
  const said = (async () => {
    try {
      const value: unknown = await predicate(question, both);
      return typeof value === 'boolean' ? { holds: value } : failed(`it returned ${typeof value}, not true or false`);
    } catch (error) {
      return failed(error instanceof Error ? error.message : String(error));
    }
  })();
  try {
    return await Promise.race([said, late]);
  } finally {
    over.abort();
  }
}
