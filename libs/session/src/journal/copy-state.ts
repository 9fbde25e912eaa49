/** Whether a session is being copied, and what its first owner begins with once it is: read from its own journal alone. */
import type { AfterCopy, CopyOrigin, JournalRecord } from '@coxswain/protocol';
import { isEnded, type SessionState } from '@coxswain/turn';

/**
 * The copy that is under way after a record, or null: from the first record that names an origin to the takeover by its
 * first owner. An import under its own id is only moved: nobody has to take it over as a fork is.
 */
export function copyAfter(
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

/** An import that is under way, or was broken off, and that only `cox session import` can go on with. */
export class ImportUnfinishedError extends Error {
  readonly code = 'import_unfinished';
  constructor(sessionId: string, n: number) {
    super(`the import of ${sessionId} is in progress, or was interrupted at record ${n}: import it again`);
  }
}

/** Whether a journal is an import of which records are missing. */
export function isUnfinishedImport({ copy, n }: { readonly copy: CopyOrigin | null; readonly n: number }): boolean {
  return copy?.how === 'import' && n < copy.n;
}

/** What the first owner of a whole copy begins with. */
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
