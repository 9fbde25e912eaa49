/** The log of one session: each line names the session, its position in the run, and its trace. */
import type { Log } from '@coxswain/ports';
import type { SessionRef } from '@coxswain/protocol';
import type { SessionState } from '@coxswain/turn';
import { traceOfRun } from './trace-ids.ts';
import { tracedSession } from './work-context.ts';

/**
 * A log whose lines have `session_id` and `tenant`, and once the loaded session has started a run, `run`, `turn` and
 * `trace_id`. Fields of the line itself take precedence.
 * @param state the newest state; null while none is known.
 */
export function sessionLog(log: Log, ref: SessionRef, state: () => SessionState | null): Log {
  const head = { session_id: ref.sessionId, tenant: ref.tenant };
  // Without this cache, each line would compute hashes, also on levels that are off.
  let traced: { readonly run: number; readonly trace_id: string } | null = null;
  const ids = (): object => {
    const loaded = state();
    if (!loaded || loaded.context.run === 0) return head;
    const { run, turn } = loaded.context;
    if (traced?.run !== run) traced = { run, trace_id: traceOfRun(tracedSession(ref, loaded), run).context.traceId };
    return { ...head, run, turn, trace_id: traced.trace_id };
  };
  const line = (level: keyof Log) => (fields: object, message: string) => log[level]({ ...ids(), ...fields }, message);
  return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') };
}
