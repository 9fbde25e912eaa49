/** Whether a session is an unfinished copy, and how its first owner starts. Read from the session's own journal alone. */
import type { AfterCopy, CopyOrigin, JournalRecord } from '@coxswain/protocol';
import { isEnded, type SessionState } from '@coxswain/turn';

/**
 * The unfinished copy after a record, or null. A copy is unfinished from record 1, which names the origin:
 * - an import under the id that it has in the export, until its last copied record
 * - a fork, or an import under a new id, until this session's own `owned` with `after_copy`: after the last copied record, or
 *   earlier with an `error` if the copy cannot be completed
 * @param copy the unfinished copy before the record; not read at record 1.
 */
export function unfinishedCopyAfter(
  copy: CopyOrigin | null,
  { n, input }: Pick<JournalRecord, 'n' | 'input'>,
  sessionId: string,
): CopyOrigin | null {
  const open = n > 1 ? copy : input.type === 'command' ? (input.copied_from ?? null) : null;
  if (!open) return null;
  if (open.how === 'import' && open.session === sessionId) return n < open.n ? open : null;
  const taken = input.type === 'owned' && input.after_copy?.session === sessionId ? input.after_copy : null;
  return taken && (n > open.n || taken.error) ? null : open;
}

/**
 * The session is an unfinished import. Only the same import (`importJournal`, `cox session import`) can continue it.
 */
export class ImportUnfinishedError extends Error {
  readonly code = 'import_unfinished';
  constructor(sessionId: string, n: number) {
    super(`the import of ${sessionId} is in progress, or was interrupted at record ${n}: import it again`);
  }
}

/** Whether a journal is an import without all of its records. */
export function isUnfinishedImport({ copy, n }: { readonly copy: CopyOrigin | null; readonly n: number }): boolean {
  return copy?.how === 'import' && n < copy.n;
}

/** The member `after_copy` of the first owner's input `owned`: what a complete copy changes when the session continues. */
export function afterCopy(sessionId: string, copy: CopyOrigin, state: SessionState): AfterCopy {
  const { persona, provider, model, base_url } = copy.changes ?? {};
  const settings = Object.fromEntries(
    Object.entries({ persona, provider, model, base_url }).filter(([, value]) => value !== undefined),
  ) as NonNullable<AfterCopy['settings']>;
  const { prompt, command_id, actor, unsent } = copy;
  const prompts = prompt !== undefined && command_id !== undefined && isEnded(state);
  return {
    session: sessionId,
    ...(unsent ? { unsent } : {}),
    ...(Object.keys(settings).length > 0 ? { settings } : {}),
    ...(prompts ? { prompt: { command_id, text: prompt, ...(actor ? { actor } : {}) } } : {}),
  };
}
