/** Spans as they are made here: plain data, whoever exports or draws them. Named and attributed by the GenAI conventions of OpenTelemetry. */
import type { TraceContext } from '../wire/trace-context.ts';

/** A value of an attribute. */
export type SpanValue = string | number | boolean | readonly string[];

/** Attributes by name. */
export type SpanAttributes = Readonly<Record<string, SpanValue>>;

/** Something that happened at one moment of a span. */
export interface SpanMoment {
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly attributes: SpanAttributes;
}

/** A piece of work that has ended. */
export interface EndedSpan {
  readonly context: TraceContext;
  readonly parent: TraceContext | null;
  readonly name: string;
  /** OpenTelemetry's kinds, in lower case. */
  readonly kind: 'internal' | 'server' | 'client';
  /** Milliseconds since 1970; never behind the end. */
  readonly startMs: number;
  readonly endMs: number;
  /** Why it has failed: a code, and perhaps a sentence. Null where it has not. */
  readonly error: { readonly type: string; readonly message?: string | undefined } | null;
  readonly attributes: SpanAttributes;
  readonly moments: readonly SpanMoment[];
  /** Spans of other traces that have led to it. */
  readonly links: readonly TraceContext[];
}
