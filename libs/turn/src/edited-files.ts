/**
 * Files that calls have edited: each is shown once to file_edited hooks, at the boundary of its turn, or while the run is
 * torn down where its turn came to no boundary of its own.
 */
import { BOUNDS, type CallOutcome } from '@coxswain/protocol';
import type { SessionContext } from './context.ts';
import { type Decision, events } from './decision.ts';
import * as q from './queries.ts';

/** Says of a call's outcome, beside what else it causes, which files were edited. */
export function withEditedFiles(outcome: CallOutcome, decision: Decision): Decision {
  const { call_id, edited: paths } = outcome;
  if (decision.kind !== 'events' || !paths) return decision;
  return events({ type: 'files_edited', call_id, paths }, ...decision.events);
}

/** The files that hooks are still to be told of, with these added. Without such hooks there are none. */
export function editedFiles(context: SessionContext, paths: readonly string[]): readonly string[] {
  const watched = paths.filter((path) => q.hooksFor(context, 'file_edited', path).length > 0);
  if (watched.length === 0) return context.edited;
  return [...new Set([...context.edited, ...watched])].sort().slice(0, BOUNDS.editedPathsPerTurnMax);
}
