/**
 * Ids of a session's spans. They follow from the session, so that whoever works on it, or reads its journal, gives a span the
 * same id; nothing of them has to be kept.
 */
import type { SpanSink } from '@coxswain/ports';
import {
  formatTraceparent,
  type ParentLink,
  parseTraceparent,
  type SessionRef,
  type TraceContext,
} from '@coxswain/protocol';
import { sha256Hex } from '../journal/seal-record.ts';

/** What a session's traces follow from. */
export interface TracedSession {
  readonly ref: SessionRef;
  /** `trace` of its start: a name, or the `traceparent` of whoever has started it. */
  readonly trace: string | undefined;
  readonly parent:
    | (Pick<ParentLink, 'session' | 'call_id' | 'turn' | 'root'> & { readonly detached?: true | undefined })
    | null;
  /** The sampler of whoever traces. Without one is kept what the caller keeps, and what has no caller. */
  readonly keeps?: SpanSink['keeps'] | undefined;
}

/** A run's span, and what stands above it. */
export interface TracedRun {
  readonly context: TraceContext;
  readonly parent: TraceContext | null;
  /** The run before it, of which it is no part. */
  readonly before: TraceContext | null;
}

/**
 * A run in its trace. The first run belongs to whoever has started the session; each later one is a trace of its own, as a
 * session may live for months.
 */
export function traceOfRun(session: TracedSession, run: number): TracedRun {
  const { ref, trace, parent } = session;
  const above = parseTraceparent(trace);
  if (run > 1) return { context: laterRun(session, run), parent: null, before: spanOfRun(session, run - 1) };
  const known = parent && !parent.detached ? parent : null;
  const traceId = above?.traceId ?? digest(32, [ref.tenant, trace ?? known?.root ?? ref.sessionId]);
  const sampled = isKept(session, traceId);
  const context = { traceId, spanId: runSpanId(ref, run), sampled };
  const inTrace = (spanId: string): TraceContext => ({ traceId, spanId, sampled });
  if (known) {
    const call = callSpanId({ tenant: ref.tenant, sessionId: known.session }, known.turn, known.call_id);
    return { context, parent: inTrace(call), before: null };
  }
  return { context, parent: above, before: null };
}

/** Of this run alone: a session may have had thousands before it. */
function spanOfRun(session: TracedSession, run: number): TraceContext {
  if (run === 1) return traceOfRun(session, 1).context;
  return laterRun(session, run);
}

function laterRun(session: TracedSession, run: number): TraceContext {
  const { ref } = session;
  const traceId = digest(32, [ref.tenant, ref.sessionId, 'run', run]);
  return { traceId, spanId: runSpanId(ref, run), sampled: isKept(session, traceId) };
}

/** Whoever has started the session and says what is kept says it of all its runs. */
function isKept({ trace, keeps }: TracedSession, traceId: string): boolean {
  const above = parseTraceparent(trace);
  return keeps ? keeps(traceId, above) : (above?.sampled ?? true);
}

/** What a child's start has as its `trace`, so that its first run stands in the trace of the run that starts it. */
export function traceForChild(session: TracedSession, run: number): string {
  if (run > 1) return formatTraceparent(spanOfRun(session, run));
  return session.trace ?? session.parent?.root ?? session.ref.sessionId;
}

interface Owner {
  readonly tenant: string;
  readonly sessionId: string;
}

function runSpanId({ tenant, sessionId }: Owner, run: number): string {
  return digest(16, [tenant, sessionId, 'run', run]);
}

/** The span of a turn. */
export function turnSpanId({ tenant, sessionId }: Owner, run: number, turn: number): string {
  return digest(16, [tenant, sessionId, 'run', run, 'turn', turn]);
}

/** The span of a call. Children know it, too: of a call they know the turn and the id. */
export function callSpanId({ tenant, sessionId }: Owner, turn: number, callId: string): string {
  return digest(16, [tenant, sessionId, 'turn', turn, 'call', callId]);
}

/** The span of anything else that is waited for: an effect by its id, an approval by its call. */
export function workSpanId({ tenant, sessionId }: Owner, kind: string, id: string): string {
  return digest(16, [tenant, sessionId, kind, id]);
}

function digest(digits: number, parts: readonly (string | number)[]): string {
  const hex = sha256Hex(JSON.stringify(parts)).slice(0, digits);
  // No id is all zeros.
  return /^0+$/.test(hex) ? `${hex.slice(1)}1` : hex;
}
