/**
 * Ports of telemetry: meters, and receivers of spans. They neither block nor throw.
 */
import type { EndedSpan, MetricLabel, MetricName, TraceContext } from '@coxswain/protocol';

/** The labels of a meter. */
export type LabelsOf<N extends MetricName> = Readonly<Record<MetricLabel<N>, string>>;

/** The meters of a process. Contract: return at once and do not throw. */
export interface Meters {
  /** Adds to a counter, or to a gauge, which may also go down. */
  add<N extends MetricName>(name: N, labels: LabelsOf<N>, by?: number): void;
  /** Records a value in a histogram. */
  observe<N extends MetricName>(name: N, labels: LabelsOf<N>, value: number): void;
  /**
   * Registers the source of a gauge, which is called on each read. It returns one value for each value of the gauge's
   * one label. The key of a gauge without labels is the empty string.
   * @returns whether the process serves its meters. If not, there is no need to count for them.
   */
  census(
    name:
      | 'coxswain_sessions'
      | 'coxswain_approvals_waiting'
      | 'coxswain_approvals_oldest_seconds'
      | 'coxswain_replica_findings'
      | 'coxswain_stream_fill_ratio',
    take: () => ReadonlyMap<string, number>,
  ): boolean;
}

/** Receives spans. */
export interface SpanSink {
  /** Accepts a span that has ended. Contract: returns at once and does not throw. */
  take(span: EndedSpan): void;
  /**
   * Whether the spans of a trace are kept, by the sampler of the process.
   * @param above the parent span in another process, with its sampling decision; null if the trace starts here.
   */
  keeps(traceId: string, above: TraceContext | null): boolean;
  /**
   * Removes the secrets of the process from a text. Call it before the text is truncated: the rest of a truncated
   * secret would not be recognized.
   */
  masked(text: string): string;
  /** Whether spans may contain the content of messages and calls: bounded in size, and without apparent secrets. */
  readonly capturesContent: boolean;
}

/** The telemetry of a host. */
export interface Telemetry {
  readonly meters: Meters;
  /** Null without tracing. */
  readonly spans: SpanSink | null;
}
