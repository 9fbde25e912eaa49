/** Which traces are kept: the samplers of OpenTelemetry, asked with our contexts. */
import type { SpanSink } from '@coxswain/ports';
import type { TraceContext } from '@coxswain/protocol';
import { ROOT_CONTEXT, SpanKind, TraceFlags, trace } from '@opentelemetry/api';
import { ParentBasedSampler, SamplingDecision, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace-base';
import type { SamplerSettings } from './trace-settings.ts';

/** Decides by the id of a trace alone, so that all processes with the same settings decide alike. */
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
