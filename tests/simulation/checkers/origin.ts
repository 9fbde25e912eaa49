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
