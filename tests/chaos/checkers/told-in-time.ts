/** Receipts tell what stands in the journal, and tell it after it is stored. */
import { CHECKERS, found } from '../../simulation/checkers/check.ts';
import type { Schedule } from '../../simulation/generator.ts';
import { History } from '../../simulation/history.ts';
import { grouped, type StoredJournal } from '../evidence.ts';
import type { ChaosChecker } from './check.ts';

/** By so much the server's clock and ours may disagree about one moment. */
const CLOCKS_AGREE_MS = 20;

/** See the top of the file. */
export const checkToldInTime: ChaosChecker = async ({ history, journals }) => {
  const problems: { session: string; what: string }[] = [];
  const checker = CHECKERS.receipts;
  if (!checker) throw new Error('the simulation has no checker of receipts');
  const receipts = grouped(history.of('receipt'), ({ receipt }) => receipt.session_id);
  const invoked = grouped(history.of('invoked'), ({ session }) => session);
  for (const journal of journals) {
    const { session } = journal;
    const own = new History(() => 0);
    for (const { verb, commandId } of invoked.get(session) ?? [])
      own.push({ what: 'sent', command: { session, seq: 0, verb, commandId, tell: true } });
    for (const { receipt, atMs } of receipts.get(session) ?? [])
      own.push({ what: 'receipt', receipt, recordsThen: storedBy(journal, atMs + CLOCKS_AGREE_MS) });
    const evidence = {
      history: own,
      journals,
      // Not read by it.
      schedule: {} as Schedule,
      statuses: new Map(),
      blobs: { get: async () => null },
      ended: true,
    };
    for (const what of await found(checker, journal, evidence)) problems.push({ session, what });
  }
  return problems;
};

function storedBy({ storedAtMs }: StoredJournal, atMs: number): number {
  const later = storedAtMs.findIndex((stored) => stored > atMs);
  return later === -1 ? storedAtMs.length : later;
}
