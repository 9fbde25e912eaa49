/**
 * Spans as plain data, independent of exporters and views. Names and attributes follow the GenAI conventions of
 * OpenTelemetry.
 */
import type { TraceContext } from '../wire/trace-context.ts';

/** The value of an attribute. */
export type SpanValue = string | number | boolean | readonly string[];

/** Attributes by name. */
export type SpanAttributes = Readonly<Record<string, SpanValue>>;

/** A point event within a span. */
export interface SpanMoment {
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly attributes: SpanAttributes;
}

/** A finished piece of work. */
export interface EndedSpan {
  readonly context: TraceContext;
  readonly parent: TraceContext | null;
  readonly name: string;
  /** OpenTelemetry's kinds, in lower case. */
  readonly kind: 'internal' | 'server' | 'client';
  /** Milliseconds since 1970; at most the end. */
  readonly startMs: number;
  readonly endMs: number;
  /** The error of a failed span: a code, and optionally a sentence. Null without a failure. */
  readonly error: { readonly type: string; readonly message?: string | undefined } | null;
  readonly attributes: SpanAttributes;
  readonly moments: readonly SpanMoment[];
  /** Spans of other traces: of senders whose commands affected the span, and of the previous run. */
  readonly links: readonly TraceContext[];
}
