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
  /** Puts a value into a histogram. */
  observe<N extends MetricName>(name: N, labels: LabelsOf<N>, value: number): void;
  /**
   * Fills a gauge in whenever it is read: with a value for each value of its one label. A gauge without a label has one value, under the
   * empty text.
   * @returns whether the process serves its meters: where it does not, nothing has to be counted for them.
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
  /** Takes a span that has ended. Contract: returns at once and does not throw. */
  take(span: EndedSpan): void;
  /**
   * Whether the spans of a trace are kept, as the sampler of the process decides.
   * @param above what stands above in another process, with what was decided there; null where the trace begins here.
   */
  keeps(traceId: string, above: TraceContext | null): boolean;
  /**
   * Removes the secrets of the process from a text. Call it before the text is cut: the rest of a secret would not be
   * recognized.
   */
  masked(text: string): string;
  /** Whether what was said and done may stand in spans, too: bounded, and without what looks like a secret. */
  readonly capturesContent: boolean;
}

/** What a host is given to be looked at with. */
export interface Telemetry {
  readonly meters: Meters;
  /** Null without tracing. */
  readonly spans: SpanSink | null;
}
