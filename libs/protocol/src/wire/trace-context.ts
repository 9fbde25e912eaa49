/**
 * The position of a piece of work in a trace, as W3C Trace Context (https://www.w3.org/TR/trace-context/).
 */

/** A span that can be the parent of others. */
export interface TraceContext {
  /** 32 hexadecimal digits, not all of them 0. */
  readonly traceId: string;
  /** 16 hexadecimal digits, not all of them 0. */
  readonly spanId: string;
  /** Whether the trace is sampled. Spans of a trace that is not sampled are not exported. */
  readonly sampled: boolean;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Reads a `traceparent`; null if it is absent or invalid. Additional fields of later versions are ignored. */
export function parseTraceparent(text: string | undefined): TraceContext | null {
  const [, version, traceId = '', spanId = '', flags = '00'] = TRACEPARENT.exec(text?.slice(0, 55) ?? '') ?? [];
  const longer = text !== undefined && text.length > 55;
  if (version === undefined || version === 'ff' || (longer && (version === '00' || text[55] !== '-'))) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** Formats a `traceparent` of version 00. The text is also a valid value of the member `trace` of a start. */
export function formatTraceparent({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}
