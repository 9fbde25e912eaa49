/** The log of one session: each line names the session, its position in the run, and its trace. */
import type { Log } from '@coxswain/ports';
import type { SessionRef } from '@coxswain/protocol';
import type { SessionState } from '@coxswain/turn';
import { traceOfRun } from './trace-ids.ts';
import { tracedSession } from './work-context.ts';

/**
 * A log whose lines have `session_id` and `tenant`, and for a loaded session `run`, `turn` and `trace_id`. Fields of the line
 * itself take precedence. The fields are computed only for lines that are written.
 */
export function sessionLog(log: Log, ref: SessionRef, state: () => SessionState | null): Log {
  const line = (level: keyof Log) => (fields: object, message: string) =>
    log[level]({ ...idsOf(ref, state()), ...fields }, message);
  return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') };
}

function idsOf(ref: SessionRef, state: SessionState | null): object {
  const head = { session_id: ref.sessionId, tenant: ref.tenant };
  if (!state || state.context.run === 0) return head;
  const { run, turn } = state.context;
  return { ...head, run, turn, trace_id: traceOfRun(tracedSession(ref, state), run).context.traceId };
}
