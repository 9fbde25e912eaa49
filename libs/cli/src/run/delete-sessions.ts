/** Deletes sessions that a command line names, one after another, and tells of each. */
import type { SessionRef } from '@coxswain/protocol';
import type { DeleteOptions, DeletePorts, Deletion } from '@coxswain/session';

/** How sessions are deleted. */
export interface Deleting {
  readonly options: DeleteOptions;
  /** Whether to go on, asked once, of those that can be deleted. Without it nobody is asked. */
  readonly confirm?: ((refs: readonly SessionRef[]) => Promise<boolean>) | undefined;
  /** Hears of each session what became of it. */
  readonly tell: (ref: SessionRef, deletion: Deletion) => void;
}

/** What became of them: `refused` counts those that were told to be; `blobs` is what the deleted ones referred to. */
export interface DeletedSessions {
  readonly status: 'done' | 'declined';
  readonly refused: number;
  readonly blobs: ReadonlySet<string>;
}

/**
 * Deletes them. Where somebody is to be asked each is looked at before: what cannot be deleted is told first, and not asked about.
 * @throws what the ports throw; what was told until then is.
 */
export async function deleteSessions(
  ports: DeletePorts,
  refs: readonly SessionRef[],
  { options, confirm, tell }: Deleting,
): Promise<DeletedSessions> {
  const { deleteSession } = await import('@coxswain/session');
  const blobs = new Set<string>();
  let refused = 0;
  const deletable: SessionRef[] = [];
  for (const ref of confirm ? refs : []) {
    const looked = await deleteSession(ports, ref, { ...options, dryRun: true });
    if (looked.status !== 'refused') deletable.push(ref);
    else {
      refused++;
      tell(ref, looked);
    }
  }
  if (confirm && deletable.length > 0 && !(await confirm(deletable))) return { status: 'declined', refused, blobs };
  for (const ref of confirm ? deletable : refs) {
    const deletion = await deleteSession(ports, ref, options);
    if (deletion.status === 'refused') refused++;
    else if (deletion.status !== 'would_delete') for (const sha256 of deletion.blobs) blobs.add(sha256);
    tell(ref, deletion);
  }
  return { status: 'done', refused, blobs };
}
