/**
 * A deleted session ends in one tombstone, which tells the truth: nothing is written behind it, what comes behind it is refused
 * with `session_deleted`, and only what stood before it is taken away. Of every other session everything stands.
 */
import { type Tombstone, tombstoneIn } from '@coxswain/protocol';
import { sha256Hex } from '@coxswain/session';
import type { Checker, Evidence, Journal } from './check.ts';
import { isBrokenOff } from './origin.ts';

/** Everything that was stored of a session, and what of it stands in the end. */
export interface Stored {
  readonly written: readonly Uint8Array[];
  readonly stands: readonly Uint8Array[];
}

/** See the top of the file. */
export const checkDeletion: Checker = (journal, evidence) => {
  const stored = evidence.stored?.get(journal.session);
  if (!stored) return [];
  const { written, stands } = stored;
  const at = written.findIndex((bytes) => tombstoneIn(bytes));
  if (at < 0) return areSame(written, stands) ? [] : ['nobody has deleted it, and not everything stands'];
  const kept = written.slice(written.length - stands.length);
  return [
    ...(at < written.length - 1 ? [`${written.length - 1 - at} were written behind its tombstone`] : []),
    ...(stands.length > 0 && areSame(kept, stands) ? [] : ['what stands of it is not its end']),
    ...wholly(journal, evidence, stands),
    ...truth(journal, tombstoneIn(written[at] as Uint8Array) as Tombstone),
    ...refusals(journal, evidence),
  ];
};

/** Whoever was told that it is deleted from outside was told that all of it is. */
function wholly({ session }: Journal, { history }: Evidence, stands: readonly Uint8Array[]): string[] {
  const did = history.of('deletion').filter((one) => one.session === session);
  const isWhole = did.some(({ did: what }) => what === 'deleted' || what === 'completed');
  return isWhole && stands.length !== 1 ? [`it is deleted, and ${stands.length} of it stand`] : [];
}

function truth({ records, bytes }: Journal, { records: count, last_hash }: Tombstone): string[] {
  const { state } = records.at(-1) ?? { state: 'none' };
  return [
    ...(count === records.length ? [] : [`its tombstone is of ${count} records, and it had ${records.length}`]),
    ...(last_hash === sha256Hex(bytes.at(-1) ?? new Uint8Array()) ? [] : ['its tombstone is of another last record']),
    ...(state === 'stopped' || state === 'failed' || isBrokenOff({ records })
      ? []
      : [`it was deleted while ${JSON.stringify(state)}`]),
  ];
}

function refusals(journal: Journal, { history, stored }: Evidence): string[] {
  const { session } = journal;
  const until = consumedUntil(journal, { history, stored });
  const known = new Set(journal.records.flatMap(({ input }) => (input.type === 'command' ? [input.command_id] : [])));
  const by = tombstoneOf(session, { stored })?.reason;
  const late = new Set(
    history
      .of('sent')
      .flatMap(({ command: { session: of, seq, commandId } }) =>
        of === session && seq > until && !known.has(commandId) && commandId !== by ? [commandId] : [],
      ),
  );
  return history.of('receipt').flatMap(({ receipt: { session_id, command_id, stage, code }, recordsThen }) =>
    // What was answered before the tombstone stood is not about it.
    session_id === session && late.has(command_id) && recordsThen > journal.records.length && code !== 'session_deleted'
      ? [`${command_id} came behind the tombstone and was told ${code ?? stage}`]
      : [],
  );
}

/** A deleted session's tombstone. */
export function tombstoneOf(session: string, { stored }: Pick<Evidence, 'stored'>): Tombstone | null {
  for (const bytes of stored?.get(session)?.written ?? []) {
    const tombstone = tombstoneIn(bytes);
    if (tombstone) return tombstone;
  }
  return null;
}

/** The last position in the inbox that a session has to have consumed: everything, unless it was deleted. */
export function consumedUntil(
  { session, records }: Journal,
  { history, stored }: Pick<Evidence, 'history' | 'stored'>,
): number {
  const tombstone = tombstoneOf(session, { stored });
  if (!tombstone) return Number.POSITIVE_INFINITY;
  // One that a command asked for names it; one from outside comes between any two.
  const by = history.of('sent').find(({ command }) => command.commandId === tombstone.reason);
  return by ? by.command.seq - 1 : Math.max(0, ...records.map(({ cursor }) => cursor?.seq ?? 0));
}

function areSame(some: readonly Uint8Array[], others: readonly Uint8Array[]): boolean {
  return (
    some.length === others.length && some.every((bytes, i) => Buffer.compare(bytes, others[i] as Uint8Array) === 0)
  );
}
