/**
 * Ids of a session's spans. They derive from the session, so that each host and each reader of the journal computes the same
 * id; no id is stored.
 */
import type { SpanSink } from '@coxswain/ports';
import {
  formatTraceparent,
  type ParentLink,
  parseTraceparent,
  type SessionRef,
  type TraceContext,
} from '@coxswain/protocol';
import { sha256Hex } from '../journal/append-record.ts';

/** The inputs of a session's span ids. */
export interface TracedSession {
  readonly ref: SessionRef;
  /** `trace` of the start command: a name, or the `traceparent` of the caller. */
  readonly trace: string | undefined;
  /** The parent session and its call that started this one. `detached`: this session is a fork of that child. */
  readonly parent:
    | (Pick<ParentLink, 'session' | 'call_id' | 'turn' | 'root'> & { readonly detached?: true | undefined })
    | null;
  /** The sampler. Without it, a session follows its caller's sampling flag; a session without caller is kept. */
  readonly keeps?: SpanSink['keeps'] | undefined;
}

/** The span of a run, and its parent. */
export interface TracedRun {
  readonly context: TraceContext;
  readonly parent: TraceContext | null;
  /** The previous run, which is linked and not a parent; null for the first run. */
  readonly before: TraceContext | null;
}

/**
 * The trace of a run. The first run belongs to the trace that its start names, or of its caller or parent session, if there
 * is one. Each later run is a trace of its own, as a session may live for months.
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

/** The context of one run's span. */
function spanOfRun(session: TracedSession, run: number): TraceContext {
  if (run === 1) return traceOfRun(session, 1).context;
  return laterRun(session, run);
}

function laterRun(session: TracedSession, run: number): TraceContext {
  const { ref } = session;
  const traceId = digest(32, [ref.tenant, ref.sessionId, 'run', run]);
  return { traceId, spanId: runSpanId(ref, run), sampled: isKept(session, traceId) };
}

/** Whether the spans of a trace are kept, for every run of the session: see {@link TracedSession.keeps}. */
function isKept({ trace, keeps }: TracedSession, traceId: string): boolean {
  const above = parseTraceparent(trace);
  return keeps ? keeps(traceId, above) : (above?.sampled ?? true);
}

/**
 * The `trace` of a child's start, so that the child's first run belongs to the trace of the parent's run.
 * @param session the parent. @param run the parent's run.
 */
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

/** The id of a turn's span. */
export function turnSpanId({ tenant, sessionId }: Owner, run: number, turn: number): string {
  return digest(16, [tenant, sessionId, 'run', run, 'turn', turn]);
}

/** The id of a call's span. A child session can compute it: it knows its parent's id, the turn and the call id. */
export function callSpanId({ tenant, sessionId }: Owner, turn: number, callId: string): string {
  return digest(16, [tenant, sessionId, 'turn', turn, 'call', callId]);
}

/** The id of any other span: of an effect by its id, of an approval by its call, of a suspension by its record. */
export function workSpanId({ tenant, sessionId }: Owner, kind: string, id: string): string {
  return digest(16, [tenant, sessionId, kind, id]);
}

function digest(digits: number, parts: readonly (string | number)[]): string {
  const hex = sha256Hex(JSON.stringify(parts)).slice(0, digits);
  // An id of zeros only is invalid (W3C Trace Context).
  return /^0+$/.test(hex) ? `${hex.slice(1)}1` : hex;
}
