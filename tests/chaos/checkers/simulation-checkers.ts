/** The checkers of the simulation that read journals and commands, on a real run's evidence. */
import { INTERNAL_VERBS } from '@coxswain/protocol';
import { CHECKERS, type Evidence, found, type Journal } from '../../simulation/checkers/check.ts';
import type { Schedule } from '../../simulation/generator.ts';
import { History } from '../../simulation/history.ts';
import type { ChaosEvidence } from '../evidence.ts';
import type { ChaosChecker } from './check.ts';
import { publishedIn } from './published.ts';

/** One of them, by its name there. */
export function simulationChecker(name: 'chain' | 'calls' | 'runs' | 'commands' | 'fates' | 'replay'): ChaosChecker {
  const checker = CHECKERS[name];
  if (!checker) throw new Error(`the simulation has no checker ${name}`);
  return async (evidence) => {
    const asThere = simulationEvidence(evidence);
    const problems: { session: string; what: string }[] = [];
    for (const journal of evidence.journals)
      for (const what of await found(checker, journal, asThere)) problems.push({ session: journal.session, what });
    return problems;
  };
}

/** What was sent, as the simulation writes it down. What hosts and workers send themselves is known from its record alone. */
function simulationEvidence({ history, journals }: ChaosEvidence): Evidence {
  const sent = new History(() => 0);
  const push = (session: string, seq: number, verb: string, commandId: string) =>
    sent.push({ what: 'sent', command: { session, seq, verb, commandId, tell: true } });
  const consumedAt = new Map<string, number>();
  const internal = new Set<string>(INTERNAL_VERBS);
  for (const journal of journals) {
    for (const [id, { verb, seq }] of firstsOf(journal)) {
      if (internal.has(verb)) push(journal.session, seq, verb, id);
      else consumedAt.set(`${journal.session} ${id}`, seq);
    }
  }
  for (const [key, { session, seqs, verb, commandId, isAcknowledged }] of publishedIn(history)) {
    for (const seq of seqs) push(session, seq, verb, commandId);
    // An attempt without an answer may have been stored, and earlier than the one that had an answer.
    const seq = consumedAt.get(key);
    if (
      seq !== undefined &&
      !seqs.includes(seq) &&
      (!isAcknowledged || seq < Math.min(...seqs, Number.POSITIVE_INFINITY))
    )
      push(session, seq, verb, commandId);
  }
  return {
    history: sent,
    journals,
    // Not read by these checkers.
    schedule: {} as Schedule,
    statuses: new Map(),
    // Nothing here is large enough to lie apart.
    blobs: { get: async () => null },
    ended: history.of('phase').some(({ phase }) => phase === 'settled'),
  };
}

/** Commands of a journal, by id, where each was consumed first. */
function firstsOf({ records }: Journal): Map<string, { readonly verb: string; readonly seq: number }> {
  const firsts = new Map<string, { verb: string; seq: number }>();
  for (const { input, cursor } of records) {
    if (input.type === 'command' && !firsts.has(input.command_id))
      firsts.set(input.command_id, { verb: input.verb, seq: cursor?.seq ?? 0 });
  }
  return firsts;
}
