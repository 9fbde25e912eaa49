/** RUNNER-3: a receipt states only what the journal holds, and each sender who asked gets the receipt of its record. */
import { isDelivery, rejectionIn } from '@coxswain/protocol';
import type { Checker, Journal } from './check.ts';
import { tombstoneOf } from './deletion.ts';

/** Whether a record took the command in, and neither it nor a later one rejected it. */
function tookEffect({ records }: Journal, id: string): boolean {
  return (
    records.some(({ input }) => input.type === 'command' && input.command_id === id) &&
    !records.some(({ events }) => rejectionIn(events, id))
  );
}

/** See the top of the file. */
export const checkReceipts: Checker = (journal, { history, stored }) => {
  const wrong: string[] = [];
  // A command that is delivered again behind a tombstone gets the receipt `session_deleted`, whatever its fate before.
  const isDeleted = tombstoneOf(journal.session, { stored }) !== null;
  const commands = history.of('sent').map(({ command }) => `${command.session} ${command.commandId}`);
  const sent = new Set(commands);
  // One that was refused for want of a session may be sent again.
  const isSentOnce = (id: string) => commands.filter((one) => one === `${journal.session} ${id}`).length === 1;
  for (const { receipt, recordsThen } of history.of('receipt')) {
    if (receipt.session_id !== journal.session) continue;
    const { command_id: id, stage, n } = receipt;
    if (!sent.has(`${journal.session} ${id}`)) wrong.push(`${id} was told of and never sent`);
    if (n === undefined) {
      // A repetition is told what the first one was told; an unknown session leaves no record.
      if (stage === 'delivered') wrong.push(`${id} was told delivered, and not where`);
      if (stage === 'rejected' && !isDeleted && isSentOnce(id) && tookEffect(journal, id))
        wrong.push(`${id} was told rejected, and is in the journal all the same`);
      continue;
    }
    if (n > recordsThen) wrong.push(`${id} was told ${stage} of record ${n} when ${recordsThen} were stored`);
    const events = journal.records[n - 1]?.events ?? [];
    const rejected = events.some((event) => event.type === 'command_rejected' && event.command_id === id);
    const injected = events.some((event) => isDelivery(event) && event.command_id === id);
    const takenBack = events.some(
      (event) =>
        (event.type === 'injection_collapsed' && event.command_id === id) ||
        (event.type === 'control_outcome' && event.status === 'revoked' && event.target === id),
    );
    if (stage === 'revoked' && !takenBack) wrong.push(`${id} was told revoked, and record ${n} does not take it back`);
    if (rejected !== (stage === 'rejected')) wrong.push(`${id} was told ${stage}, and record ${n} says otherwise`);
    const blocked = events.some((event) => event.type === 'injection_blocked' && event.command_id === id);
    if ((stage === 'blocked') !== blocked) wrong.push(`${id} was told ${stage}, and record ${n} says otherwise`);
    if (stage === 'delivered' && !injected) wrong.push(`${id} was told delivered, and record ${n} does not deliver it`);
  }
  return wrong;
};
