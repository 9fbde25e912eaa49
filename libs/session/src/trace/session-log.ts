/** The log of one session: each line says whose it is, and where in its work and its trace it stands. */
import type { Log } from '@coxswain/ports';
import type { SessionRef } from '@coxswain/protocol';
import type { SessionState } from '@coxswain/turn';
import { traceOfRun } from './trace-ids.ts';
import { tracedSession } from './work-context.ts';

/**
 * A log whose lines have `session_id`, `tenant`, and of a session that is loaded `run`, `turn` and `trace_id`. What a line says
 * itself holds. The fields are made only for lines that are written.
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
