/** The report of a deletion, and its actor. */
import type { Actor } from '@coxswain/protocol';
import type { Deletion } from '@coxswain/session';
import { actorName } from '../connection/mod.ts';
import { counted } from '../terminal/mod.ts';

/** The text for standard output, and the text for people on standard error. */
export interface DeletedLine {
  readonly out: string;
  readonly err: string;
}

/** Formats the report for one session. */
export function deletedLine(id: string, tenant: string, deletion: Deletion, json: boolean): DeletedLine {
  const { status } = deletion;
  const head = { type: status === 'refused' ? 'not_deleted' : status, session_id: id, tenant };
  if (deletion.status === 'refused') {
    const { code, message } = deletion;
    const err = `${code}: ${message}\n`;
    return json ? { out: `${JSON.stringify({ ...head, code, message })}\n`, err } : { out: '', err };
  }
  const records = deletion.status === 'would_delete' ? deletion.records : deletion.tombstone.records;
  if (json) return { out: `${JSON.stringify({ ...head, records })}\n`, err: '' };
  const outcome = { deleted: 'deleted', completed: 'its deletion is complete now', would_delete: 'would be deleted' }[
    deletion.status
  ];
  const of = tenant === 'default' ? '' : ` of ${tenant}`;
  return { out: `${id}\n`, err: `${id}${of}: ${outcome}, ${counted(records, 'record')}\n` };
}

/** The actor of a deletion; unverified, like every name on the bare bus. */
export function deletingActor(env: NodeJS.ProcessEnv): Actor | undefined {
  const name = actorName(env);
  return name === undefined ? undefined : { name, verified: false };
}
