/** What the store has acknowledged stands in a journal: the command, and whatever a receipt spoke of. */
import type { ChaosChecker } from './check.ts';
import { keyOf, publishedIn } from './published.ts';

/** See the top of the file. */
export const checkAcknowledged: ChaosChecker = ({ history, journals }) => {
  const wrong: { session: string; what: string }[] = [];
  const consumed = new Set<string>();
  const lengths = new Map<string, number>();
  for (const { session, records } of journals) {
    lengths.set(session, records.length);
    for (const { input } of records) if (input.type === 'command') consumed.add(keyOf(session, input.command_id));
  }
  for (const [key, { session, commandId, verb, isAcknowledged }] of publishedIn(history)) {
    if (isAcknowledged && !consumed.has(key))
      wrong.push({ session, what: `${commandId} (${verb}) was acknowledged and is in no record` });
  }
  for (const { receipt } of history.of('receipt')) {
    const { session_id: session, command_id, stage, n } = receipt;
    if (n !== undefined && n > (lengths.get(session) ?? 0))
      wrong.push({ session, what: `${command_id} was told ${stage} of record ${n}, which is not there` });
  }
  return wrong;
};
