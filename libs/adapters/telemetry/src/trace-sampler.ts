/** Decides which traces are kept, with the samplers of OpenTelemetry. */
import type { SpanSink } from '@coxswain/ports';
import type { TraceContext } from '@coxswain/protocol';
import { ROOT_CONTEXT, SpanKind, TraceFlags, trace } from '@opentelemetry/api';
import { ParentBasedSampler, SamplingDecision, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace-base';
import type { SamplerSettings } from './trace-settings.ts';

/**
 * Creates a sampler. It decides by the trace id, so that all processes with the same settings make the same decision.
 * With `isParentBased`, the decision of a parent span in another process takes precedence.
 */
export function createSampler({ isParentBased, ratio }: SamplerSettings): SpanSink['keeps'] {
  const root = new TraceIdRatioBasedSampler(ratio);
  const sampler = isParentBased ? new ParentBasedSampler({ root }) : root;
  return (traceId, above) => {
    const { decision } = sampler.shouldSample(contextOf(above), traceId, '', SpanKind.INTERNAL, {}, []);
    return decision === SamplingDecision.RECORD_AND_SAMPLED;
  };
}

function contextOf(above: TraceContext | null) {
  if (!above) return ROOT_CONTEXT;
  const { traceId, spanId, sampled } = above;
  const traceFlags = sampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}
