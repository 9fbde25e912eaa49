/** Which journals are copies, and of what. */
import type { CopyOrigin } from '@coxswain/protocol';
import type { Journal } from './check.ts';

/** Where a journal was copied from, or undefined. */
export function originOf({ records }: Pick<Journal, 'records'>): CopyOrigin | undefined {
  const input = records[0]?.input;
  return input?.type === 'command' ? input.copied_from : undefined;
}

/** Whether a journal was copied from another. */
export function isCopy(journal: Journal): boolean {
  return originOf(journal) !== undefined;
}

/** Whether a journal is an import that was broken off: nobody goes on with it, and it may be deleted as it stands. */
export function isBrokenOff(journal: Pick<Journal, 'records'>): boolean {
  const origin = originOf(journal);
  return origin?.how === 'import' && journal.records.length < origin.n;
}
