/** Deletes the sessions of a command line one after another, and reports each one. */
import type { SessionRef } from '@coxswain/protocol';
import type { DeleteOptions, DeletePorts, Deletion } from '@coxswain/session';

/** How to delete sessions. */
export interface Deleting {
  readonly options: DeleteOptions;
  /** Asks once for confirmation, with the sessions that can be deleted. Without it, no question is asked. */
  readonly confirm?: ((refs: readonly SessionRef[]) => Promise<boolean>) | undefined;
  /** Called with the result for each session. */
  readonly report: (ref: SessionRef, deletion: Deletion) => void;
}

/**
 * The result: `refused` counts the sessions that could not be deleted; `blobs` are the objects that the deleted ones
 * referenced.
 */
export interface DeletedSessions {
  readonly status: 'done' | 'declined';
  readonly refused: number;
  readonly blobs: ReadonlySet<string>;
}

/**
 * Deletes sessions. With `confirm`, every session is checked first. Sessions that cannot be deleted are reported before
 * the question and are not part of it.
 * @throws the errors of the ports, after earlier results were reported.
 */
export async function deleteSessions(
  ports: DeletePorts,
  refs: readonly SessionRef[],
  { options, confirm, report }: Deleting,
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
      report(ref, looked);
    }
  }
  if (confirm && deletable.length > 0 && !(await confirm(deletable))) return { status: 'declined', refused, blobs };
  for (const ref of confirm ? deletable : refs) {
    const deletion = await deleteSession(ports, ref, options);
    if (deletion.status === 'refused') refused++;
    else if (deletion.status !== 'would_delete') for (const sha256 of deletion.blobs) blobs.add(sha256);
    report(ref, deletion);
  }
  return { status: 'done', refused, blobs };
}
