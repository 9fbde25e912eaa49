/** The span context of an effect, for another process that runs the effect. */
import type { SpanSink } from '@coxswain/ports';
import { formatTraceparent, type SessionRef } from '@coxswain/protocol';
import type { SessionState, WorkEffect } from '@coxswain/turn';
import { callSpanId, type TracedSession, traceOfRun, workSpanId } from './trace-ids.ts';

/** The inputs of a session's span ids, from its state. */
export function tracedSession(ref: SessionRef, { context }: SessionState, spans?: SpanSink | null): TracedSession {
  return { ref, trace: context.settings?.trace, parent: context.parent, keeps: spans?.keeps };
}

/** The `traceparent` of an effect's work. */
export function traceparentOf(ref: SessionRef, state: SessionState, effect: WorkEffect, spans: SpanSink): string {
  const { run, turn } = state.context;
  const { traceId, sampled } = traceOfRun(tracedSession(ref, state, spans), Math.max(1, run)).context;
  const isCall = effect.kind === 'call_tool' || effect.kind === 'start_child';
  const spanId = isCall ? callSpanId(ref, turn, effect.callId) : workSpanId(ref, 'effect', effect.id);
  return formatTraceparent({ traceId, spanId, sampled });
}
